;; A canister that admits messages of the method "open" only.
(module
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "accept_message" (func $accept))
  (import "ic0" "msg_method_name_size" (func $name_size (result i32)))
  (memory 1)
  (func (export "canister_inspect_message")
    (if (i32.eq (call $name_size) (i32.const 4)) (then (call $accept))))
  (func (export "canister_update open") (call $reply))
  (func (export "canister_update closed") (call $reply)))
