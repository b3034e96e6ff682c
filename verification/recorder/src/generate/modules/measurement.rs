//! A measurement: code between two readings of the counter, compared with other code.
//!
//! ```text
//!   start ◄ counter
//!   if (i32.const 1) { with × times }          in a run of its own
//!   if (i32.const 1) { end ◄ counter }         in a run of its own
//!   answer end − start
//!   the same for without
//! ```
//!
//! Both answers include the cost of the readings; their difference is the additional cost of `with`.
//! [`Work`] describes it, so that it can be computed from prices.

use std::fmt::Write;

use stablebench_workload::Rng;

/// Operations that one iteration of a measurement executes more with `with` than with `without`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operators of `with`, by their names in WebAssembly text.
    pub operators: Vec<String>,
    /// Operators of `without`.
    pub less: Vec<String>,
    /// Functions entered.
    pub functions: u64,
    /// Bytes of bulk operators.
    pub bytes: u64,
    /// System API calls and their arguments, without the operator `call`.
    pub calls: Vec<(&'static str, Vec<u64>)>,
}

/// An update method that measures, and replies with two little-endian u64s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The method's name.
    pub name: String,
    /// The measured code, as WebAssembly text.
    pub with: String,
    /// The code with which it is compared.
    pub without: String,
    /// Number of repetitions between the readings.
    pub times: u64,
    /// The difference.
    pub work: Work,
}

impl Measurement {
    /// Creates a measurement that compares code with no code, once.
    pub fn of(name: impl Into<String>, with: impl Into<String>, operators: &[&str]) -> Self {
        Self {
            name: name.into(),
            with: with.into(),
            without: String::new(),
            times: 1,
            work: Work { operators: owned(operators), ..Work::default() },
        }
    }

    /// Sets the code for comparison, which executes the operators `less`.
    #[must_use]
    pub fn compared_with(mut self, without: impl Into<String>, less: &[&str]) -> Self {
        self.without = without.into();
        self.work.less = owned(less);
        self
    }

    /// Sets the number of repetitions.
    #[must_use]
    pub fn repeated(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Sets the number of functions entered.
    #[must_use]
    pub fn entering(mut self, functions: u64) -> Self {
        self.work.functions = functions;
        self
    }

    /// Sets the bytes of bulk operators.
    #[must_use]
    pub fn about(mut self, bytes: u64) -> Self {
        self.work.bytes = bytes;
        self
    }

    /// Adds a System API call.
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

/// Measurements that share a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The subject of the group.
    pub name: &'static str,
    /// Imports other than those of all modules.
    pub imports: String,
    /// Measurements, one for each method.
    pub measurements: Vec<Measurement>,
    /// The argument of every call.
    pub argument: Vec<u8>,
}

/// Operands are below this address.
pub(super) const OPERANDS: u64 = 60_000;

/// A random number of repetitions.
pub(super) fn times(rng: &mut Rng) -> u64 {
    1 + rng.below(4)
}
