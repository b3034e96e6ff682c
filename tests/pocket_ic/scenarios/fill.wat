;; A canister that uses as many instructions as it is told to, quickly: filling memory
;; costs one instruction a byte. What it fills with is there already, so that no page
;; changes but the one behind, where the argument goes and from where the counter is
;; answered. What its operators cost is summed up in `fill.rs`.
(module
  (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (memory 2)

  ;; The argument: how many times to fill 64 KiB, at least once, and how many bytes more.
  (func $fill (local $times i32)
    (call $argument (i32.const 65536) (i32.const 0) (i32.const 8))
    (local.set $times (i32.load (i32.const 65536)))
    (loop $again
      (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536))
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (memory.fill (i32.const 0) (i32.const 0) (i32.load (i32.const 65540))))

  (func $answer
    (call $fill)
    (i64.store (i32.const 65536) (call $counter (i32.const 0)))
    (call $append (i32.const 65536) (i32.const 8))
    (call $reply))
  (export "canister_update update" (func $answer))
  (export "canister_query query" (func $answer))

  ;; What was last filled.
  (func (export "canister_query last")
    (call $append (i32.const 65536) (i32.const 8))
    (call $reply))
  (func (export "canister_update update_and_trap") (call $fill) (unreachable)))
