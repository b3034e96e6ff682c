;; A canister that executes scripts: the argument of a method, and what it stores for callbacks,
;; heartbeats and timers. `script.rs` describes the operations and writes scripts.
(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "msg_reject_code" (func $reject_code (result i32)))
  (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
  (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
  (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
  (import "ic0" "msg_caller_size" (func $caller_size (result i32)))
  (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
  (import "ic0" "msg_cycles_available" (func $available64 (result i64)))
  (import "ic0" "msg_cycles_available128" (func $available (param i32)))
  (import "ic0" "msg_cycles_accept" (func $accept64 (param i64) (result i64)))
  (import "ic0" "msg_cycles_accept128" (func $accept (param i64 i64 i32)))
  (import "ic0" "msg_cycles_refunded" (func $refunded64 (result i64)))
  (import "ic0" "msg_cycles_refunded128" (func $refunded (param i32)))
  (import "ic0" "msg_deadline" (func $deadline (result i64)))
  (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
  (import "ic0" "call_data_append" (func $data_append (param i32 i32)))
  (import "ic0" "call_cycles_add" (func $cycles_add64 (param i64)))
  (import "ic0" "call_cycles_add128" (func $cycles_add (param i64 i64)))
  (import "ic0" "call_with_best_effort_response" (func $best_effort (param i32)))
  (import "ic0" "call_perform" (func $perform (result i32)))
  (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
  (import "ic0" "time" (func $time (result i64)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (import "ic0" "canister_status" (func $status (result i32)))
  (import "ic0" "canister_version" (func $version (result i64)))
  (import "ic0" "in_replicated_execution" (func $replicated (result i32)))
  (import "ic0" "data_certificate_present" (func $certificate (result i32)))
  (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
  (import "ic0" "is_controller" (func $is_controller (param i32 i32) (result i32)))
  (import "ic0" "cycles_burn128" (func $burn (param i64 i64 i32)))
  (import "ic0" "cost_call" (func $cost_call (param i64 i64 i32)))
  (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
  (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
  (memory 4)
  (table 2 funcref)
  (elem (i32.const 0) $callback)
  (global $free (mut i32) (i32.const 65536))  ;; scripts are stored from here on
  (global $count (mut i64) (i64.const 0))
  (global $heartbeat (mut i32) (i32.const 0))
  (global $on_timer (mut i32) (i32.const 0))

  (func $allocate (param $size i32) (result i32) (local $at i32)
    (local.set $at (global.get $free))
    (global.set $free (i32.add (global.get $free)
      (i32.and (i32.add (local.get $size) (i32.const 15)) (i32.const -16))))
    (loop $grow
      (if (i32.gt_u (global.get $free) (i32.mul (memory.size) (i32.const 65536)))
        (then (drop (memory.grow (i32.const 1))) (br $grow))))
    (local.get $at))
  (func $keep (param $at i32) (param $size i32) (result i32) (local $copy i32)
    (local.set $copy (call $allocate (i32.add (local.get $size) (i32.const 1))))
    (memory.copy (local.get $copy) (local.get $at) (local.get $size))
    (i32.store8 (i32.add (local.get $copy) (local.get $size)) (i32.const 0))
    (local.get $copy))
  (func $put (param $value i64)
    (i64.store (i32.const 0) (local.get $value))
    (call $append (i32.const 0) (i32.const 8)))
  (func $put16 (call $append (i32.const 0) (i32.const 16)))
  (func $length (param $at i32) (result i32) (i32.load16_u (local.get $at)))
  (func $after (param $at i32) (result i32)
    (i32.add (i32.add (local.get $at) (i32.const 2)) (call $length (local.get $at))))

  ;; flags: 1 cleanup, 2 cycles, 4 best effort, 8 no callbacks, 16 not performed, 32 64-bit cycles
  (func $send (param $p i32) (result i32) (local $flags i32) (local $callee i32) (local $method i32)
      (local $payload i32) (local $reply i32) (local $reject i32) (local $cleanup i32)
    (local.set $flags (i32.load8_u (local.get $p)))
    (local.set $callee (i32.add (local.get $p) (i32.const 1)))
    (local.set $method (call $after (local.get $callee)))
    (local.set $payload (call $after (local.get $method)))
    (local.set $reply (call $after (local.get $payload)))
    (local.set $reject (call $after (local.get $reply)))
    (local.set $cleanup (call $after (local.get $reject)))
    (local.set $p (call $after (local.get $cleanup)))
    (call $call_new
      (i32.add (local.get $callee) (i32.const 2)) (call $length (local.get $callee))
      (i32.add (local.get $method) (i32.const 2)) (call $length (local.get $method))
      (select (i32.const -1) (i32.const 0) (i32.and (local.get $flags) (i32.const 8)))
      (call $keep (i32.add (local.get $reply) (i32.const 2)) (call $length (local.get $reply)))
      (select (i32.const -1) (i32.const 0) (i32.and (local.get $flags) (i32.const 8)))
      (call $keep (i32.add (local.get $reject) (i32.const 2)) (call $length (local.get $reject))))
    (call $data_append (i32.add (local.get $payload) (i32.const 2)) (call $length (local.get $payload)))
    (if (i32.and (local.get $flags) (i32.const 1)) (then
      (call $on_cleanup (i32.const 0)
        (call $keep (i32.add (local.get $cleanup) (i32.const 2)) (call $length (local.get $cleanup))))))
    (if (i32.and (local.get $flags) (i32.const 2)) (then
      (if (i32.and (local.get $flags) (i32.const 32))
        (then (call $cycles_add64 (i64.load (local.get $p))))
        (else (call $cycles_add (i64.const 0) (i64.load (local.get $p)))))))
    (if (i32.and (local.get $flags) (i32.const 4)) (then
      (call $best_effort (i32.load (i32.add (local.get $p) (i32.const 8))))))
    (if (i32.eqz (i32.and (local.get $flags) (i32.const 16))) (then
      (if (local.tee $callee (call $perform)) (then (call $put (i64.extend_i32_u (local.get $callee)))))))
    (i32.add (local.get $p) (i32.const 12)))

  (func $run (param $p i32) (local $op i32) (local $size i32) (local $at i32)
    (block $end (loop $next
      (local.set $op (i32.load8_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (block $version (block $status (block $burn (block $cost (block $certify (block $is_controller
      (block $certificate (block $replicated (block $store_timer (block $store_heartbeat (block $timer
      (block $call (block $stable (block $touch (block $spin (block $unreachable (block $trap (block $bump
      (block $count (block $deadline (block $reject_msg (block $reject_code (block $argument (block $caller
      (block $refunded64 (block $refunded (block $accept64 (block $accept (block $available64
      (block $available (block $time (block $counter1 (block $counter0 (block $reject (block $reply
      (block $data
        (br_table $end $data $reply $reject $counter0 $counter1 $time $available $available64 $accept
          $accept64 $refunded $refunded64 $caller $argument $reject_code $reject_msg $deadline $count
          $bump $trap $unreachable $spin $touch $stable $call $timer $store_heartbeat $store_timer
          $replicated $certificate $is_controller $certify $cost $burn $status $version (local.get $op)))
      ;; $data
      (call $append (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p)))
      (local.set $p (call $after (local.get $p))) (br $next))
      ;; $reply
      (call $reply) (br $next))
      ;; $reject
      (call $reject (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p)))
      (local.set $p (call $after (local.get $p))) (br $next))
      (call $put (call $counter (i32.const 0))) (br $next))
      (call $put (call $counter (i32.const 1))) (br $next))
      (call $put (call $time)) (br $next))
      (call $available (i32.const 0)) (call $put16) (br $next))
      (call $put (call $available64)) (br $next))
      ;; $accept
      (call $accept (i64.const 0) (i64.load (local.get $p)) (i32.const 0)) (call $put16)
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      ;; $accept64
      (call $put (call $accept64 (i64.load (local.get $p))))
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      (call $refunded (i32.const 0)) (call $put16) (br $next))
      (call $put (call $refunded64)) (br $next))
      ;; $caller
      (call $caller_copy (i32.const 0) (i32.const 0) (call $caller_size))
      (call $append (i32.const 0) (call $caller_size)) (br $next))
      ;; $argument
      (local.set $size (call $arg_size))
      (local.set $at (call $allocate (local.get $size)))
      (call $arg_copy (local.get $at) (i32.const 0) (local.get $size))
      (call $append (local.get $at) (local.get $size)) (br $next))
      (call $put (i64.extend_i32_u (call $reject_code))) (br $next))
      ;; $reject_msg
      (local.set $size (call $reject_size))
      (local.set $at (call $allocate (local.get $size)))
      (call $reject_copy (local.get $at) (i32.const 0) (local.get $size))
      (call $append (local.get $at) (local.get $size)) (br $next))
      (call $put (call $deadline)) (br $next))
      (call $put (global.get $count)) (br $next))
      ;; $bump
      (global.set $count (i64.add (global.get $count) (i64.const 1))) (br $next))
      ;; $trap
      (call $trap (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p))) (br $next))
      (unreachable))
      ;; $spin
      (local.set $size (i32.load (local.get $p)))
      (loop $again (br_if $again (local.tee $size (i32.sub (local.get $size) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 4))) (br $next))
      ;; $touch: writes the count to so many OS pages
      (local.set $size (i32.load16_u (local.get $p)))
      (local.set $at (call $allocate (i32.mul (local.get $size) (i32.const 4096))))
      (loop $again
        (i64.store (local.get $at) (i64.add (global.get $count) (i64.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 4096)))
        (br_if $again (local.tee $size (i32.sub (local.get $size) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 2))) (br $next))
      ;; $stable: grows stable memory by a page and writes so many bytes there
      (call $stable_write (i64.mul (call $stable_grow (i64.const 1)) (i64.const 65536))
        (i64.const 0) (i64.load16_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 2))) (br $next))
      (local.set $p (call $send (local.get $p))) (br $next))
      ;; $timer: so many nanoseconds from now, or off
      (call $put (call $timer (if (result i64) (i64.eqz (i64.load (local.get $p))) (then (i64.const 0))
        (else (i64.add (call $time) (i64.load (local.get $p)))))))
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      ;; $store_heartbeat
      (global.set $heartbeat (call $keep (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p))))
      (local.set $p (call $after (local.get $p))) (br $next))
      ;; $store_timer
      (global.set $on_timer (call $keep (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p))))
      (local.set $p (call $after (local.get $p))) (br $next))
      (call $put (i64.extend_i32_u (call $replicated))) (br $next))
      (call $put (i64.extend_i32_u (call $certificate))) (br $next))
      ;; $is_controller: of the caller
      (call $caller_copy (i32.const 0) (i32.const 0) (call $caller_size))
      (call $put (i64.extend_i32_u (call $is_controller (i32.const 0) (call $caller_size)))) (br $next))
      ;; $certify: so many bytes
      (call $certify (i32.const 0) (i32.load16_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 2))) (br $next))
      (call $cost_call (i64.const 10) (i64.const 1000) (i32.const 0)) (call $put16) (br $next))
      ;; $burn
      (call $burn (i64.const 0) (i64.load (local.get $p)) (i32.const 0)) (call $put16)
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      (call $put (i64.extend_i32_u (call $status))) (br $next))
      (call $put (call $version)) (br $next))))
  (func $callback (param $script i32) (call $run (local.get $script)))
  (func $method (local $size i32) (local $at i32)
    (local.set $size (call $arg_size))
    (local.set $at (call $allocate (i32.add (local.get $size) (i32.const 1))))
    (call $arg_copy (local.get $at) (i32.const 0) (local.get $size))
    (call $run (local.get $at)))
  (export "canister_update run" (func $method))
  (export "canister_query ask" (func $method))
  (export "canister_composite_query compose" (func $method))
  (func (export "canister_heartbeat")
    (if (global.get $heartbeat) (then (call $run (global.get $heartbeat)))))
  (func (export "canister_global_timer")
    (if (global.get $on_timer) (then (call $run (global.get $on_timer))))))
