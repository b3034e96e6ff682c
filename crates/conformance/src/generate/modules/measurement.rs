//! A measurement: code between two readings of the counter, and other code.
//!
//! ```text
//!   start ◄ counter
//!   if (i32.const 1) { with × times }          in a run of its own
//!   if (i32.const 1) { end ◄ counter }         in a run of its own
//!   answer end − start
//!   the same for without
//! ```
//!
//! What the readings cost is in both answers; their difference is what `with` costs
//! more. [`Work`] tells what that is, for those who know the prices.

use std::fmt::Write;

/// What one round of a measurement executes more with than without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operators executed with, by their names in WebAssembly text.
    pub operators: Vec<String>,
    /// Operators executed without.
    pub less: Vec<String>,
    /// Functions entered.
    pub functions: u64,
    /// Bytes that bulk operators are about.
    pub bytes: u64,
    /// Calls of the System API and their arguments, beside the operator `call`.
    pub calls: Vec<(&'static str, Vec<u64>)>,
}

/// An update method that measures, and answers two little-endian u64s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The method's name.
    pub name: String,
    /// What is measured, as WebAssembly text.
    pub with: String,
    /// What it is compared with.
    pub without: String,
    /// How often each is written down between the readings.
    pub times: u64,
    /// The difference.
    pub work: Work,
}

impl Measurement {
    /// Code beside no code, once.
    pub fn of(name: impl Into<String>, with: impl Into<String>, operators: &[&str]) -> Self {
        Self {
            name: name.into(),
            with: with.into(),
            without: String::new(),
            times: 1,
            work: Work { operators: owned(operators), ..Work::default() },
        }
    }

    /// Beside this code, which executes some operators.
    #[must_use]
    pub fn beside(mut self, without: impl Into<String>, less: &[&str]) -> Self {
        self.without = without.into();
        self.work.less = owned(less);
        self
    }

    /// So often.
    #[must_use]
    pub fn repeated(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// With functions entered.
    #[must_use]
    pub fn entering(mut self, functions: u64) -> Self {
        self.work.functions = functions;
        self
    }

    /// With bytes that bulk operators are about.
    #[must_use]
    pub fn about(mut self, bytes: u64) -> Self {
        self.work.bytes = bytes;
        self
    }

    /// With a call of the System API.
    #[must_use]
    pub fn calling(mut self, name: &'static str, args: &[u64]) -> Self {
        self.work.calls.push((name, args.to_vec()));
        self
    }

    /// The method, as WebAssembly text.
    pub(super) fn method(&self) -> String {
        let mut text = format!(
            "  (func (export \"canister_update {}\")\n    (local $start i64) (local $end i64) \
             (local $narrow i32) (local $wide i64)\n",
            self.name
        );
        for code in [&self.with, &self.without] {
            text += "    (local.set $start (call $counter (i32.const 0)))\n";
            text += "    (if (i32.const 1) (then";
            for _ in 0..self.times {
                let _ = write!(text, " {code}");
            }
            text += "))\n    (if (i32.const 1) (then \
                     (local.set $end (call $counter (i32.const 0)))))\n    \
                     (call $answer (i64.sub (local.get $end) (local.get $start)))\n";
        }
        text + "    (call $reply))\n"
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
