//! Generated cases: the same for the same seed, and what they should be.

#[path = "generated/canister.rs"]
mod canister;
#[path = "generated/modules.rs"]
mod modules;
#[path = "generated/prices.rs"]
mod prices;
#[path = "generated/random.rs"]
mod random;

use std::path::Path;

use stablebench_conformance::{Answer, Answers, Case, Embedded, generate, run};
use stablebench_replica::Rules;

/// What the calls of a case are answered with on a new embedded replica.
fn answers(case: &Case) -> Vec<Answer> {
    let wasm = case.wasm(Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    match run(&mut Embedded::new(Rules::of_2025_10()).unwrap(), case, &wasm).unwrap() {
        Answers::Calls(answers) => answers,
        Answers::Refused(answer) => panic!("{} was refused: {:?}", case.name, answer.outcome),
    }
}

#[test]
fn the_seed_decides_what_is_generated() {
    type Generator = fn(u64) -> Vec<Case>;
    let generators: [Generator; 3] = [
        |seed| generate::modules::cases(seed, 1),
        |seed| generate::random::cases(seed, 5),
        |seed| generate::canister::cases(seed, 4, Path::new("bench.wasm")).unwrap(),
    ];
    for generator in generators {
        assert!(generator(1) == generator(1));
        assert!(generator(1) != generator(2));
    }
}
