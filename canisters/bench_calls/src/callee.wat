;; The canister that is called.
;;
;;   take, take_cycles, look   replies nothing but the end of a reply
;;   give                      replies as many zeros as the argument says, and the end
;;   start                     counts the next executions of its task; the argument is their number
;;   counted                   replies the number of those that were counted and their instructions
;;
;; Memory:
;;
;;        0   12   the end of a reply: instructions ↕ 8, bytes of the argument ↕ 4
;;       16   16   executions and their instructions
;;       32   16   cycles that were accepted
;;       48    …   the argument, up to 2 MiB
;;  2097216   …   zeros, up to 2 MiB

(import "ic0" "msg_arg_data_size" (func $size (result i32)))
(import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
(import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
(import "ic0" "msg_reply" (func $reply))
(import "ic0" "msg_cycles_accept128" (func $accept (param i64 i64 i32)))
(import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
(import "ic0" "global_timer_set" (func $set_timer (param i64) (result i64)))
(import "ic0" "time" (func $time (result i64)))

(memory 65)

;; Executions of the task that are still counted.
(global $left (mut i64) (i64.const 0))

(func $argument
  (i32.store (i32.const 8) (call $size))
  (call $copy (i32.const 48) (i32.const 0) (i32.load (i32.const 8))))

(func $end
  (i64.store (i32.const 0) (call $counter (i32.const 0)))
  (call $append (i32.const 0) (i32.const 12))
  (call $reply))

(func $take (call $argument) (call $end))
(export "canister_update take" (func $take))
(export "canister_query look" (func $take))

(func (export "canister_update take_cycles")
  (call $argument)
  ;; Up to 2^64 - 1, which is more than a call brings.
  (call $accept (i64.const 0) (i64.const -1) (i32.const 32))
  (call $end))

(func (export "canister_update give")
  (call $argument)
  (call $append (i32.const 2097216) (i32.load (i32.const 48)))
  (call $end))

(func (export "canister_update start")
  (call $argument)
  (global.set $left (i64.load (i32.const 48)))
  (i64.store (i32.const 16) (i64.const 0))
  (i64.store (i32.const 24) (i64.const 0))
  (drop (call $set_timer (call $time)))
  (call $end))

(func (export "canister_update counted")
  (call $append (i32.const 16) (i32.const 16))
  (call $reply))

(func $task
  (if (i64.ne (global.get $left) (i64.const 0))
    (then
      (global.set $left (i64.sub (global.get $left) (i64.const 1)))
      (i64.store (i32.const 16) (i64.add (i64.load (i32.const 16)) (i64.const 1)))
      (i64.store (i32.const 24)
        (i64.add (i64.load (i32.const 24)) (call $counter (i32.const 0)))))))

;; Sets the timer for the next round, unless the next execution is not counted.
(func $timer
  (if (i64.gt_u (global.get $left) (i64.const 1))
    (then (drop (call $set_timer (call $time)))))
  (call $task))
