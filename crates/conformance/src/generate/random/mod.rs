//! Random programs.
//!
//! ```text
//!   functions 0 to n       (i32, i64) → i64; each calls only those below it
//!    └ statements          nested to a depth: if, loop, br_table, blocks left early,
//!       └ expressions      stores, bulk copies, stable memory, calls, globals
//! ```
//!
//! Loops count down in locals of their own, and a call stands only where the work that it
//! is estimated to be, times the rounds of the loops around it, is small: every program
//! ends soon. Most programs cannot trap; those that can divide, convert, read or jump where
//! it may go wrong.
//!
//! A method puts its argument into the heap, runs the highest function, and answers the
//! counter and a sum over everything that was computed: values, the heap, what was read
//! from stable memory. Both go on from call to call.
//!
//! | | |
//! |---|---|
//! | `module` | the module around the functions |
//! | `program` | functions and statements |
//! | `expression` | expressions of the four types |

mod expression;
mod module;
mod program;

use stablebench_workload::Rng;

use crate::{Call, Case, Kind, Source};

/// So many programs, each with a few calls.
pub fn cases(seed: u64, count: u16) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    (0..count).map(|number| case(number, &mut rng)).collect()
}

fn case(number: u16, rng: &mut Rng) -> Case {
    let text = module::module(rng);
    let mut call = |kind, method: &str| {
        let bytes = 16 + rng.below(48);
        let arg: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
        Call::new(kind, method, arg)
    };
    let calls = vec![
        call(Kind::Update, "run"),
        call(Kind::Query, "peek"),
        call(Kind::Update, "run"),
        // The heap is new and stable memory stays.
        Call::new(Kind::Upgrade, "", []),
        call(Kind::Update, "run"),
    ];
    Case {
        name: format!("random_{number:03}"),
        group: "random".to_owned(),
        module: Source::Wat(text),
        install: None,
        calls,
    }
}
