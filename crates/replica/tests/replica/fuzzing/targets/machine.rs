//! The canister of the sequences. The argument of each message is a script.
//!
//! ```text
//!   argument   end: u8 │ kind: u8, a: u64, b: u64 │ kind, a, b │ …
//!   heap       0 the current action │ 32 a number for the reply │ 8192 text of the module
//! ```

use std::sync::OnceLock;

use stablebench_replica::Module;

use super::replica;

/// Address of the text of the module.
pub const TEXT_AT: u64 = 8_192;
/// Address of a number that is appended to the reply.
pub const NUMBER_AT: u64 = 32;
/// Address of an action's `b`.
pub const B_AT: u64 = 9;
/// The value of the global for which `canister_pre_upgrade` traps.
pub const POISON: u64 = 0xdead;

/// The modules. They differ in their text and in the initial value of a global, and the second one has
/// a start function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    First,
    Second,
}

impl Version {
    pub fn text(self) -> &'static [u8; 7] {
        match self {
            Self::First => b"machine",
            Self::Second => b"machina",
        }
    }

    pub fn seed(self) -> u64 {
        match self {
            Self::First => 7,
            Self::Second => 70,
        }
    }

    /// The number that the start function adds to the global.
    pub fn start(self) -> Option<u64> {
        match self {
            Self::First => None,
            Self::Second => Some(1_000),
        }
    }

    pub fn module(self) -> &'static Module {
        static MODULES: OnceLock<[Module; 2]> = OnceLock::new();
        let modules = MODULES.get_or_init(|| {
            [Self::First, Self::Second].map(|version| {
                let wasm = wat::parse_str(version.wat()).expect("a module");
                replica().compile(&wasm).expect("a good module")
            })
        });
        &modules[self as usize]
    }

    fn wat(self) -> String {
        let text = String::from_utf8_lossy(self.text());
        let start = self.start().map_or_else(String::new, |added| {
            format!(
                "(func $start (global.set $kept (i64.add (global.get $kept) (i64.const {added}))))
                (start $start)"
            )
        });
        MACHINE
            .replace("TEXT", &text)
            .replace("SEED", &self.seed().to_string())
            .replace("START", &start)
            .replace("POISON", &POISON.to_string())
            .replace("DEAR", &"(drop (f64.min (f64.const 0) (f64.const 0)))".repeat(1_000))
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$each])* $variant),* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];
        }
    };
}

numbered! {
    /// Kinds of actions, in the order of the canister's branches.
    Kind {
        /// `heap[a] = b`, eight bytes.
        Store,
        /// Sets the globals to `b`.
        Keep,
        /// `stable[a] = b`, eight bytes.
        StableWrite,
        /// Grows the heap by `a` pages and replies with the result.
        Grow,
        StableGrow,
        /// Certifies `a` bytes at the address of `b`.
        Certify,
        /// Replies with the eight bytes at `a`.
        Load,
        StableRead,
        SayKept,
        SayFloat,
        SaySize,
        SayStableSize,
        SayVersion,
        SayTime,
        /// Fills the heap from `a` with the low byte of `b`; the next two bytes are the size.
        Fill,
        /// Prints the eight bytes of `b`.
        Print,
        /// Copies from the start of the heap to stable memory at `a`; the low 16 bits of `b` are the
        /// size.
        StableCopy,
        /// Sets the timer to `b` and replies with its old value.
        Timer,
        /// Burns cycles, given by the low three bytes of `b`, and replies with the burned amount.
        Burn,
    }
}

numbered! {
    /// Ends of a message after its actions, in the order of the canister's branches.
    End {
        Reply,
        Silence,
        Trap,
        ReplyThenTrap,
        Reject,
        OutOfInstructions,
        CallTrap,
        ReplyTwice,
        Recursion,
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub kind: Kind,
    pub a: u64,
    pub b: u64,
}

/// The script of a message.
#[derive(Clone, Debug)]
pub struct Script {
    pub end: End,
    pub actions: Vec<Action>,
}

impl Script {
    pub fn argument(&self) -> Vec<u8> {
        let mut bytes = vec![self.end as u8];
        for action in &self.actions {
            bytes.extend(action.bytes());
        }
        bytes
    }
}

impl Action {
    /// The encoding in the argument, and at address 0 of the heap.
    pub fn bytes(&self) -> Vec<u8> {
        [&[self.kind as u8][..], &self.a.to_le_bytes(), &self.b.to_le_bytes()].concat()
    }
}

const MACHINE: &str = r#"(module
    (import "ic0" "canister_version" (func $version (result i64)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "cycles_burn128" (func $burn (param i64 i64 i32)))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $argument_size (result i32)))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
    (import "ic0" "stable64_size" (func $stable_size (result i64)))
    (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (memory 2)
    (data (i32.const 8192) "TEXT")
    (global $kept (mut i64) (i64.const SEED))
    (global $float (mut f64) (f64.const 0.5))
    START

    (func $say (param i64)
        (i64.store (i32.const 32) (local.get 0))
        (call $append (i32.const 32) (i32.const 8)))
    (func $recur (call $recur))

    (func $one (local $a i64) (local $b i64)
        (local.set $a (i64.load (i32.const 1)))
        (local.set $b (i64.load (i32.const 9)))
        (block $18 (block $17 (block $16 (block $15 (block $14 (block $13 (block $12 (block $11
        (block $10 (block $9 (block $8 (block $7 (block $6 (block $5 (block $4 (block $3 (block $2
        (block $1 (block $0
            (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11 $12 $13 $14 $15 $16 $17 $18
                (i32.load8_u (i32.const 0))))
        (i64.store (i32.wrap_i64 (local.get $a)) (local.get $b)) (return))
        (global.set $kept (local.get $b))
            (global.set $float (f64.reinterpret_i64 (local.get $b))) (return))
        (call $stable_write (local.get $a) (i64.const 9) (i64.const 8)) (return))
        (call $say (i64.extend_i32_s (memory.grow (i32.wrap_i64 (local.get $a))))) (return))
        (call $say (call $stable_grow (local.get $a))) (return))
        (call $certify (i32.const 9) (i32.wrap_i64 (local.get $a))) (return))
        (call $say (i64.load (i32.wrap_i64 (local.get $a)))) (return))
        (call $stable_read (i64.const 32) (local.get $a) (i64.const 8))
            (call $say (i64.load (i32.const 32))) (return))
        (call $say (global.get $kept)) (return))
        (call $say (i64.reinterpret_f64 (global.get $float))) (return))
        (call $say (i64.extend_i32_u (memory.size))) (return))
        (call $say (call $stable_size)) (return))
        (call $say (call $version)) (return))
        (call $say (call $time)) (return))
        (memory.fill (i32.wrap_i64 (local.get $a)) (i32.wrap_i64 (local.get $b))
            (i32.wrap_i64 (i64.and (i64.shr_u (local.get $b) (i64.const 8)) (i64.const 0xffff))))
            (return))
        (call $print (i32.const 9) (i32.const 8)) (return))
        (call $stable_write (local.get $a) (i64.const 0)
            (i64.and (local.get $b) (i64.const 0xffff))) (return))
        (call $say (call $timer (local.get $b))) (return))
        (call $burn (i64.const 0) (i64.and (local.get $b) (i64.const 0xffffff)) (i32.const 32))
            (call $say (i64.load (i32.const 32))))

    (func $act (result i32) (local $at i32) (local $size i32)
        (local.set $size (call $argument_size))
        (local.set $at (i32.const 1))
        (block $done (loop $next
            (br_if $done (i32.gt_u (i32.add (local.get $at) (i32.const 17)) (local.get $size)))
            (call $argument (i32.const 0) (local.get $at) (i32.const 17))
            (call $one)
            (local.set $at (i32.add (local.get $at) (i32.const 17)))
            (br $next)))
        (call $argument (i32.const 0) (i32.const 0) (i32.const 1))
        (i32.load8_u (i32.const 0)))

    (func $message
        (block $8 (block $7 (block $6 (block $5 (block $4 (block $3 (block $2 (block $1 (block $0
            (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 (call $act)))
        (call $reply) (return))
        (return))
        (unreachable))
        (call $reply) (unreachable))
        (call $reject (i32.const 8192) (i32.const 7)) (return))
        (loop $again DEAR (br $again)) (return))
        (call $trap (i32.const 8192) (i32.const 7)) (return))
        (call $reply) (call $reply) (return))
        (call $recur))
    (export "canister_update act" (func $message))
    (export "canister_query look" (func $message))

    ;; Where nobody is answered, replying is left out.
    (func $hook
        (block $8 (block $6 (block $5 (block $2 (block $0
            (br_table $0 $0 $2 $2 $0 $5 $6 $0 $8 (call $act)))
        (return))
        (unreachable))
        (loop $again DEAR (br $again)) (return))
        (call $trap (i32.const 8192) (i32.const 7)) (return))
        (call $recur))
    (export "canister_init" (func $hook))
    (export "canister_post_upgrade" (func $hook))

    (func (export "canister_pre_upgrade")
        (if (i64.eq (global.get $kept) (i64.const POISON)) (then (unreachable)))
        (if (i64.ne (call $stable_size) (i64.const 0)) (then
            (i64.store (i32.const 32) (global.get $kept))
            (call $stable_write (i64.const 0) (i64.const 32) (i64.const 8))))))"#;
