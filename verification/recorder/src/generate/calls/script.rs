//! Scripts for the canister `scripted.wat`.
//!
//! A script is a sequence of operations, each a byte and its operands, and ends with a zero byte or
//! with the argument. Numbers are little-endian; `text` is a length of two bytes and the bytes.

use stablebench_conformance::subnet::Part;

/// Bytes, some of which are ids of canisters.
#[derive(Clone, Debug, Default)]
pub struct Script {
    parts: Vec<Part>,
    length: usize,
}

/// The operations without operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// `msg_reply`
    Reply = 2,
    /// Appends `performance_counter(0)`, as 8 bytes.
    Counter0 = 4,
    /// Appends `performance_counter(1)`.
    Counter1 = 5,
    /// Appends `time`.
    Time = 6,
    /// Appends `msg_cycles_available128`.
    Available = 7,
    /// Appends `msg_cycles_available`.
    Available64 = 8,
    /// Appends `msg_cycles_refunded128`.
    Refunded = 11,
    /// Appends `msg_cycles_refunded`.
    Refunded64 = 12,
    /// Appends the caller.
    Caller = 13,
    /// Appends the argument, or the reply in a callback.
    Argument = 14,
    /// Appends `msg_reject_code`.
    RejectCode = 15,
    /// Appends the message of a reject.
    RejectMessage = 16,
    /// Appends `msg_deadline`.
    Deadline = 17,
    /// Appends the count.
    Count = 18,
    /// Adds 1 to the count.
    Bump = 19,
    /// `unreachable`
    Unreachable = 21,
    /// Appends `in_replicated_execution`.
    Replicated = 29,
    /// Appends `data_certificate_present`.
    Certificate = 30,
    /// Appends whether the caller is a controller.
    IsController = 31,
    /// Appends `cost_call` for 10 and 1 000 bytes.
    Cost = 33,
    /// Appends `canister_status`.
    Status = 35,
    /// Appends `canister_version`.
    Version = 36,
}

/// The operations with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// `msg_cycles_accept128`; appends what was accepted.
    Accept(u64),
    /// `msg_cycles_accept`
    Accept64(u64),
    /// This number of iterations of a loop.
    Spin(u32),
    /// Writes to this number of new 4 KiB pages of the heap.
    Touch(u16),
    /// Grows stable memory by a page and writes this number of bytes there.
    Stable(u16),
    /// Sets the timer to this number of nanoseconds from now, or switches it off; appends its last value.
    Timer(u64),
    /// `certified_data_set` with this number of bytes.
    Certify(u16),
    /// `cycles_burn128`; appends what was burned.
    Burn(u64),
}

/// The operations with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Text {
    /// Appends the text.
    Data = 1,
    /// `msg_reject`
    Reject = 3,
    /// `trap`
    Trap = 20,
}

/// A call to another canister.
#[derive(Clone, Debug, Default)]
pub struct Send {
    /// The canister.
    pub callee: Script,
    /// The method.
    pub method: &'static str,
    /// The argument.
    pub argument: Script,
    /// The script of the callback of a reply.
    pub on_reply: Script,
    /// The script of the callback of a reject.
    pub on_reject: Script,
    /// The script of the cleanup.
    pub on_cleanup: Option<Script>,
    /// Cycles to send.
    pub cycles: Option<u64>,
    /// True if `call_cycles_add` sends them.
    pub narrow: bool,
    /// Seconds until a best-effort call expires.
    pub timeout: Option<u32>,
    /// True if the callbacks have the index -1.
    pub one_way: bool,
    /// True if `call_perform` is not called.
    pub dropped: bool,
}

impl Script {
    /// The id of a canister, by its number.
    pub fn id(number: usize) -> Self {
        const ID: usize = 10;
        Self { parts: vec![Part::Id(number)], length: ID }
    }

    /// Bytes as they are.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self { parts: vec![Part::Bytes(bytes.to_vec())], length: bytes.len() }
    }

    /// The parts of an argument.
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// Number of bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Adds an operation.
    pub fn op(&mut self, op: Op) {
        self.push(&[op as u8]);
    }

    /// Adds an operation with a number.
    pub fn number(&mut self, number: Number) {
        let (op, operand): (u8, Vec<u8>) = match number {
            Number::Accept(cycles) => (9, cycles.to_le_bytes().into()),
            Number::Accept64(cycles) => (10, cycles.to_le_bytes().into()),
            Number::Spin(iterations) => (22, iterations.max(1).to_le_bytes().into()),
            Number::Touch(pages) => (23, pages.max(1).to_le_bytes().into()),
            Number::Stable(bytes) => (24, bytes.to_le_bytes().into()),
            Number::Timer(nanoseconds) => (26, nanoseconds.to_le_bytes().into()),
            Number::Certify(bytes) => (32, bytes.to_le_bytes().into()),
            Number::Burn(cycles) => (34, cycles.to_le_bytes().into()),
        };
        self.push(&[op]);
        self.push(&operand);
    }

    /// Adds an operation with a text.
    pub fn text(&mut self, op: Text, text: &[u8]) {
        self.push(&[op as u8]);
        self.nested(&Self::bytes(text));
    }

    /// Stores the script that heartbeats run.
    pub fn on_heartbeat(&mut self, script: &Self) {
        self.push(&[27]);
        self.nested(script);
    }

    /// Stores the script that timers run.
    pub fn on_timer(&mut self, script: &Self) {
        self.push(&[28]);
        self.nested(script);
    }

    /// Adds a call.
    pub fn send(&mut self, send: &Send) {
        let flags = u8::from(send.on_cleanup.is_some())
            | u8::from(send.cycles.is_some()) << 1
            | u8::from(send.timeout.is_some()) << 2
            | u8::from(send.one_way) << 3
            | u8::from(send.dropped) << 4
            | u8::from(send.narrow) << 5;
        self.push(&[25, flags]);
        self.nested(&send.callee);
        self.nested(&Self::bytes(send.method.as_bytes()));
        for script in [&send.argument, &send.on_reply, &send.on_reject] {
            self.nested(script);
        }
        self.nested(&send.on_cleanup.clone().unwrap_or_default());
        self.push(&send.cycles.unwrap_or_default().to_le_bytes());
        self.push(&send.timeout.unwrap_or_default().to_le_bytes());
    }

    fn nested(&mut self, script: &Self) {
        self.push(&(script.length as u16).to_le_bytes());
        self.parts.extend(script.parts.iter().cloned());
        self.length += script.length;
    }

    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
    }
}
