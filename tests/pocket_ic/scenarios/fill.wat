;; A canister that uses a requested number of instructions. It does so quickly, because filling
;; memory costs one instruction a byte. The filled bytes keep their values, so only the second
;; page changes, which takes the argument and the counter. `limits.rs` adds up the cost of its
;; operators.
(module
  (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (memory 2)

  ;; The argument: the number of times to fill 64 KiB, at least 1, and a number of further bytes.
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

  ;; The reply of the last update.
  (func (export "canister_query last")
    (call $append (i32.const 65536) (i32.const 8))
    (call $reply))
  (func (export "canister_update update_and_trap") (call $fill) (unreachable)))
