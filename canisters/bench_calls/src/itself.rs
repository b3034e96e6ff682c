//! The methods that the canister calls itself: the same as in `callee.wat`, with the same calls of
//! the system.

use std::cell::RefCell;

use ic0::{
    msg_arg_data_copy, msg_arg_data_size, msg_reply, msg_reply_data_append, performance_counter,
};
use stablebench_suite_calls::work::TAIL;

/// The largest argument and the largest reply.
const BYTES: usize = 2 << 20;

thread_local! {
    static ARGUMENT: RefCell<[u8; BYTES]> = const { RefCell::new([0; BYTES]) };
    // A constant would be a part of the module.
    static ZEROS: RefCell<[u8; BYTES]> = const { RefCell::new([0; BYTES]) };
}

#[unsafe(export_name = "canister_update take")]
extern "C" fn take() {
    with_argument(|_| {});
}

#[unsafe(export_name = "canister_update give")]
extern "C" fn give() {
    with_argument(|argument| {
        let bytes = argument.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        ZEROS.with_borrow(|zeros| {
            msg_reply_data_append(zeros.get(..bytes as usize).unwrap_or_default());
        });
    });
}

/// Replies what `append` appends, and the end of a reply.
fn with_argument(append: impl FnOnce(&[u8])) {
    ARGUMENT.with_borrow_mut(|buffer| {
        let size = msg_arg_data_size();
        // No argument is larger.
        let Some(argument) = buffer.get_mut(..size) else { return };
        msg_arg_data_copy(argument, 0);
        append(argument);
        let mut tail = [0; TAIL];
        tail[..8].copy_from_slice(&performance_counter(0).to_le_bytes());
        tail[8..].copy_from_slice(&(size as u32).to_le_bytes());
        msg_reply_data_append(&tail);
        msg_reply();
    });
}
