;; Counts on the heap and in stable memory, and answers both numbers, a byte each; an upgrade
;; can be made to trap.
(module
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
  (memory 1)
  (global $traps (mut i32) (i32.const 0))
  (func (export "canister_init") (drop (call $grow (i64.const 1))))
  (func (export "canister_pre_upgrade")
    (if (global.get $traps) (then (unreachable))))
  ;; The heap: 0 count, 1 count of stable memory.
  (func (export "canister_update count")
    (i32.store8 (i32.const 0) (i32.add (i32.load8_u (i32.const 0)) (i32.const 1)))
    (call $read (i64.const 1) (i64.const 0) (i64.const 1))
    (i32.store8 (i32.const 1) (i32.add (i32.load8_u (i32.const 1)) (i32.const 1)))
    (call $write (i64.const 0) (i64.const 1) (i64.const 1))
    (call $append (i32.const 0) (i32.const 2))
    (call $reply))
  (func (export "canister_update trap in upgrades")
    (global.set $traps (i32.const 1)) (call $reply))
)
