//! Which tests there are.

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use crate::canister::{Replica, Rules};
use crate::embedded::Embedded;
use crate::scenarios::{SCENARIOS, Scenario};

/// The tests that this build and this machine can run, and those that are ignored.
pub fn all(arguments: &Arguments) -> Vec<Trial> {
    let mut trials = on("embedded", &(Arc::new(Embedded(Rules::of_2025_10())) as Arc<dyn Replica>));
    #[cfg(not(feature = "pocket-ic"))]
    {
        trials.extend(ignored(arguments, "built without --features pocket-ic"));
        trials.extend(crate::without::trials());
    }
    #[cfg(feature = "pocket-ic")]
    {
        use crate::server::{BINARY, PocketIc};
        match std::env::var_os(BINARY) {
            Some(_) => trials.extend(on("pocket_ic", &PocketIc::named())),
            None => trials.extend(ignored(arguments, &format!("{BINARY} is not set"))),
        }
        if !arguments.list {
            for (name, version) in [("stand_in_10", "10.0.0"), ("stand_in_16", "16.1.0")] {
                trials.extend(on(name, &PocketIc::stand_in(version)));
            }
        }
        trials.extend(crate::failures::trials());
    }
    trials
}

/// All scenarios on that replica.
fn on(name: &str, replica: &Arc<dyn Replica>) -> Vec<Trial> {
    let trial = |&(scenario, run): &(&str, Scenario)| {
        let replica = Arc::clone(replica);
        Trial::test(format!("{name}::{scenario}"), move || {
            run(&*replica);
            Ok(())
        })
    };
    SCENARIOS.iter().map(trial).collect()
}

/// All scenarios, not run for that reason, which is told for each.
fn ignored(arguments: &Arguments, reason: &str) -> Vec<Trial> {
    let trial = |(scenario, _): &(&str, Scenario)| {
        let name = format!("pocket_ic::{scenario}");
        if !arguments.list && is_asked_for(arguments, &name) {
            eprintln!("ignored: {name}: {reason}");
        }
        // Asked for by `--ignored` or `--include-ignored`, it fails.
        let reason = reason.to_owned();
        Trial::test(name, move || Err(reason.into())).with_ignored_flag(true)
    };
    SCENARIOS.iter().map(trial).collect()
}

/// Whether the filters of the command line let a test through.
fn is_asked_for(arguments: &Arguments, name: &str) -> bool {
    let matches = |pattern: &String| match arguments.exact {
        true => name == pattern,
        false => name.contains(pattern.as_str()),
    };
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}
