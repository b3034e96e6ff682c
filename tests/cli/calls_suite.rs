//! A small run of the suite calls.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

const SMALL: &[&str] = &[
    "run",
    "calls",
    "--sizes=0,1000",
    "--fan-out=1,20",
    "--states=100",
    "--sections=size,reply,fan-out,kinds,tasks,upgrade",
    "--no-wall-time",
];

fn run(more: &[&str], directory: &Path) -> String {
    let output = stablebench(&[SMALL, more].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

struct Saved(Value);

impl Saved {
    fn number(&self, section: &str, name: &str, configuration: &str, path: &str) -> u64 {
        let mut cases = self.0["cases"].as_array().unwrap().iter();
        let found = cases.find(|case| {
            case["section"] == section
                && case["name"] == name
                && case["configuration"] == configuration
        });
        let case = found.unwrap_or_else(|| panic!("no case {section}, {name}, {configuration}"));
        let found = case.pointer(&format!("/outcome/measured{path}")).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{path} of {case}"))
    }

    fn sending(&self, section: &str, name: &str, configuration: &str) -> u64 {
        self.number(section, name, configuration, "/detail/cost/inside/messaging/cycles")
    }

    fn executions(&self, section: &str, name: &str) -> u64 {
        let path = "/detail/cost/inside/messaging/executions";
        self.number(section, name, "another canister", path)
    }
}

#[test]
fn calls_cost_what_the_price_list_says() {
    let directory = tempfile::tempdir().unwrap();
    let saved = run(&["--format=json"], directory.path());
    let saved = Saved(serde_json::from_str(&saved).unwrap());

    // A byte costs 1 000 cycles, in an argument and in a reply.
    for configuration in ["another canister", "itself", "with cycles", "best-effort"] {
        let [less, more] =
            ["0 B", "1 000 B"].map(|size| saved.sending("size", size, configuration));
        assert_eq!(more - less, 1_000 * 1_000, "{configuration}");
    }
    let [less, more] =
        ["0 B", "1 000 B"].map(|size| saved.sending("reply", size, "another canister"));
    assert_eq!(more - less, 1_000 * 1_000);

    // The message, and for each call the one that is called and a callback.
    assert_eq!(saved.executions("fan-out", "1 in parallel"), 3);
    for manner in ["in parallel", "one after another"] {
        assert_eq!(saved.executions("fan-out", &format!("20 {manner}")), 41);
        let twenty = saved.sending("fan-out", &format!("20 {manner}"), "another canister");
        let one = saved.sending("fan-out", &format!("1 {manner}"), "another canister");
        // A call without arguments, and its reply of 12 bytes.
        assert_eq!(
            (twenty - one) / 19,
            saved.sending("size", "0 B", "another canister") - base(&saved)
        );
    }
    assert_eq!(saved.executions("kinds", "an update calls an update"), 3);
    assert_eq!(saved.executions("kinds", "a composite query calls a query"), 3);
    for name in ["a user calls a query", "a composite query calls a query"] {
        assert_eq!(saved.number("kinds", name, "another canister", "/detail/cost/cycles"), 0);
    }

    // Each execution of a task is one more, and those of a heartbeat cost the same.
    let rounds = "while a canister awaits rounds";
    let executions = "/detail/cost/inside/messaging/executions";
    let alone = saved.number("tasks", rounds, "no task", executions);
    for task in ["timer", "heartbeat"] {
        assert_eq!(saved.number("tasks", rounds, task, "/detail/rows"), 30);
        let counted = saved.number("tasks", rounds, task, "/instructions");
        // The last execution of the timer does not set it again.
        assert!(
            counted > 0 && (task == "timer" || counted.is_multiple_of(30)),
            "{task}: {counted}"
        );
        let more = saved.number("tasks", rounds, task, executions) - alone;
        assert!(if task == "timer" { more == 30 } else { more > 30 }, "{task}: {more}");
    }
    let upgrade =
        |configuration| saved.number("upgrade", "100 rows", configuration, "/instructions");
    for configuration in ["btree", "sqlite/persist", "map on the heap"] {
        assert!(upgrade(configuration) > 10_000, "{configuration}");
    }
}

/// The cycles for sending the message without calls.
fn base(saved: &Saved) -> u64 {
    let path = "/harness/0/outcome/measured/detail/cost/inside/messaging/cycles";
    let harness = saved.0["harness"].as_array().unwrap();
    let place = harness.iter().position(|case| case["configuration"] == "bench_calls").unwrap();
    saved.0.pointer(&path.replace("/0/", &format!("/{place}/"))).unwrap().as_u64().unwrap()
}

#[test]
fn the_tables_show_cycles_and_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let printed = run(&["--format=markdown"], directory.path());
    for text in [
        "A call, by the size of its argument: instructions a call",
        "A call, by the size of its argument: cycles a call",
        "276 000 sending messages",
        "Messages without arguments, and all that they cause",
        "An execution of a task",
        "An upgrade, by the rows of the canister",
    ] {
        assert!(printed.contains(text), "{text}:\n{printed}");
    }
}

#[test]
fn sizes_that_no_call_can_have_are_refused() {
    for option in ["--sizes=2097152", "--fan-out=501", "--sections=all"] {
        let output = stablebench(&["run", "calls", option], Path::new("."));
        assert_eq!(output.status.code(), Some(2), "{option}");
    }
}
