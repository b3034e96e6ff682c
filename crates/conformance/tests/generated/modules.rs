//! Measured modules: every priced thing is measured, and costs what is documented.

use std::collections::BTreeSet;

use stablebench_conformance::generate::modules::{
    Measurement, NOT_CALLED, UNMEASURED, cases, groups,
};
use stablebench_workload::Rng;

use crate::answers;
use crate::prices::Prices;

fn measurements() -> Vec<Measurement> {
    groups(&mut Rng::new(0)).into_iter().flat_map(|group| group.measurements).collect()
}

#[test]
fn every_priced_operator_is_measured_or_excepted() {
    let prices = Prices::documented();
    let measured: BTreeSet<String> = measurements()
        .iter()
        .flat_map(|measurement| &measurement.work.operators)
        .map(|name| Prices::spelled(name))
        .collect();
    let excepted: BTreeSet<String> =
        UNMEASURED.iter().map(|(name, _)| Prices::spelled(name)).collect();
    let priced: BTreeSet<String> = prices.operators().cloned().collect();
    assert!(priced.len() > 400, "the table was read");
    let both: BTreeSet<String> = measured.union(&excepted).cloned().collect();
    assert_eq!(both, priced);
    assert!(measured.is_disjoint(&excepted));
}

#[test]
fn every_system_call_is_measured_or_excepted() {
    let prices = Prices::documented();
    let measured: BTreeSet<&str> = measurements()
        .iter()
        .flat_map(|measurement| &measurement.work.calls)
        .map(|(name, _)| *name)
        .collect();
    let excepted: BTreeSet<&str> = NOT_CALLED.iter().map(|(name, _)| *name).collect();
    let priced: BTreeSet<&str> = prices.calls().map(String::as_str).collect();
    assert_eq!(measured.union(&excepted).copied().collect::<BTreeSet<_>>(), priced);
    assert!(measured.is_disjoint(&excepted));
}

#[test]
fn everything_costs_what_is_documented() {
    let prices = Prices::documented();
    let mut wrong = Vec::new();
    for seed in 0..3 {
        let groups = groups(&mut Rng::new(seed));
        for (case, group) in cases(seed, 1).iter().zip(&groups) {
            let answers = answers(case);
            for (measurement, answer) in group.measurements.iter().zip(&answers) {
                let reply = match &answer.outcome {
                    Ok(reply) => reply,
                    Err(reject) => panic!("{} {}: {reject:?}", case.name, measurement.name),
                };
                // Before the counts is what a measured call appended.
                let counts = reply[reply.len() - 16..].as_chunks::<8>().0;
                let (with, without) =
                    (u64::from_le_bytes(counts[0]), u64::from_le_bytes(counts[1]));
                let documented = prices.of(&measurement.work, measurement.times);
                if with - without != documented {
                    let name = &measurement.name;
                    wrong.push(format!("{name}: {} for {documented}", with - without));
                }
            }
            let last = answers.last().unwrap();
            assert_eq!(last.outcome.as_ref().unwrap_err().code, "CanisterTrapped");
            // The base, the method's name and argument, the function and `unreachable`.
            let bytes = 121 + "unreachable".len() + group.argument.len();
            let header = u128::from(group.argument.len() > 23);
            let cycles = 6_200_000 + 2_000 * (bytes as u128 + header) + 2;
            assert_eq!(last.cycles, Some(cycles), "{}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
