;; A canister with two cells of 8 bytes: one at address 0 of the heap, one at address 0
;; of stable memory. `life.rs` documents its interface.
(module
  (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
  (memory 1)
  (data (i32.const 64) "on purpose")

  (func (export "canister_init")
    (drop (call $grow (i64.const 1))))

  (func $set
    (call $argument (i32.const 0) (i32.const 0) (i32.const 8))
    (call $write (i64.const 0) (i64.const 0) (i64.const 8)))
  (func $get
    (call $read (i64.const 8) (i64.const 0) (i64.const 8))
    (call $append (i32.const 0) (i32.const 16))
    (call $reply))

  (func (export "canister_update set") (call $set) (call $reply))
  (func (export "canister_query get") (call $get))
  (func (export "canister_query set_and_get") (call $set) (call $get))

  (func (export "canister_update set_and_trap")
    (call $set) (call $trap (i32.const 64) (i32.const 10)))
  (func (export "canister_update set_and_reach_unreachable")
    (call $set) (unreachable))
  (func (export "canister_update set_and_divide")
    (call $set) (drop (i32.div_u (i32.const 1) (i32.const 0))))
  (func (export "canister_update set_and_leave_the_heap")
    (call $set) (drop (i32.load (i32.const 65533))))
  (func (export "canister_update set_and_leave_stable_memory")
    (call $set) (call $read (i64.const 0) (i64.const 65529) (i64.const 8)))
  (func (export "canister_update set_and_reply_twice")
    (call $set) (call $reply) (call $reply))
  (func (export "canister_update set_reply_and_trap")
    (call $set) (call $reply) (call $trap (i32.const 64) (i32.const 10)))

  (func (export "canister_update set_and_reject")
    (call $set) (call $reject (i32.const 64) (i32.const 10)))
  (func (export "canister_update set_and_be_silent") (call $set)))
