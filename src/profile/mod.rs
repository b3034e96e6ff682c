//! Profiles of messages by function; `flame.rs` has their call tree and its formats.
//!
//! The profiler is the embedded replica with a profiler for messages that are measurements. Each is
//! executed twice from the same state: normally, which gives the measurement, and in the profiled form.
//! Both must have the same answers and costs.
//!
//! A call that causes several executions, on one canister or several, has one profile:
//!
//! ```text
//!   go of A                          a frame for each execution, without instructions of its own
//!     ├─ canister_update go          the functions of the execution
//!     │    └─ …
//!     └─ ask of B                    the executions that it caused
//!          ├─ canister_update ask
//!          └─ reply callback of A
//!               └─ on_reply
//! ```
//!
//! A call that causes one execution has the profile of that execution, without a frame around it.

mod flame;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use candid::CandidType;
use serde::Deserialize;
use stablebench_protocol::Measurement;
use stablebench_replica::subnet::Executed;
use stablebench_replica::{Canister as Inner, Execution, Instructions, Principal, Profile, Span};

use crate::replica::decoding::decode_one;
use crate::replica::embedded::{Embedded, needs_subnet};
use crate::replica::{Answer, Canister, Cost, Identity, Messages, Replica, SubnetKind, answer_of};
use flame::MAX_NESTED;
pub use flame::{Flame, Heading, difference, firefox, folded, json, svg, svg_of_difference, table};

/// A replica that profiles measurements.
pub struct Profiler {
    replica: Embedded,
    profiles: Profiles,
}

/// The profiles so far.
#[derive(Clone)]
struct Profiles {
    /// `true` if whole messages are profiled, `false` if only their measured parts.
    whole: bool,
    flame: Arc<Mutex<Flame>>,
}

impl Profiler {
    /// Profiles measurements on a replica, or whole messages with measurements.
    pub fn new(replica: Embedded, whole: bool) -> Self {
        Self { replica, profiles: Profiles { whole, flame: Arc::default() } }
    }

    /// Returns the profile of all of them.
    pub fn flame(&self) -> Flame {
        self.profiles.flame.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn canister(&self, inner: Inner) -> Box<dyn Canister> {
        Box::new(Profiled { inner, profiles: self.profiles.clone() })
    }
}

impl Replica for Profiler {
    fn identity(&self) -> Identity {
        self.replica.identity()
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        ensure!(
            !needs_subnet(wasm),
            "messages of a canister that calls others or sets timers cannot be profiled"
        );
        Ok(self.canister(self.replica.installed(wasm)?))
    }

    fn load(&self, wasm: &[u8], path: &Path) -> Result<Option<(Box<dyn Canister>, String)>> {
        let loaded = self.replica.loaded(wasm, path)?;
        Ok(loaded.map(|(inner, note)| (self.canister(inner), note)))
    }
}

/// A canister whose measurements are profiled, or a fork of one.
struct Profiled {
    inner: Inner,
    profiles: Profiles,
}

/// The part of a reply that all measuring methods have.
#[derive(CandidType, Deserialize)]
struct MeasuredReply {
    measurement: Measurement,
}

impl Messages for Profiled {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::update(&mut self.inner, method, argument)
    }

    fn call_id(&mut self) -> u64 {
        Messages::call_id(&mut self.inner)
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let mut twin = self.inner.fork();
        let execution = self.inner.update(Principal::anonymous(), method, argument)?;
        let Ok(reply) = &execution.outcome else {
            return Ok(answer_of(execution));
        };
        let answered: stablebench_protocol::Result<MeasuredReply> = decode_one(reply)?;
        let Ok(MeasuredReply { measurement }) = answered else {
            return Ok(answer_of(execution));
        };
        let measured = measurement.instructions;
        let to = measurement.message_instructions;
        ensure!(measured <= to, "the canister measured {measured} of {to} instructions");
        let span = match self.profiles.whole {
            true => Span::Message,
            false => Span::Between { from: Instructions(to - measured), to: Instructions(to) },
        };
        let (again, profile) =
            twin.profile_update(Principal::anonymous(), method, argument, span)?;
        check(&execution, &again, &profile, span)?;
        self.profiles.flame.lock().unwrap_or_else(PoisonError::into_inner).add(&profile)?;
        Ok(answer_of(execution))
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query(&mut self.inner, method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query_all(&mut self.inner, method, argument)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(&mut self.inner)
    }
}

impl Canister for Profiled {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Self { inner: self.inner.fork(), profiles: self.profiles.clone() }))
    }

    fn lift_limits(&mut self) -> Option<SubnetKind> {
        Canister::lift_limits(&mut self.inner)
    }

    fn set_limits(&mut self, subnet: SubnetKind) {
        Canister::set_limits(&mut self.inner, subnet);
    }

    fn save(&self, path: &Path, note: &str) -> Result<bool> {
        Canister::save(&self.inner, path, note)
    }
}

/// Compares a profiled message with the normally executed one.
fn check_equal(normal: &Execution, profiled: &Execution) -> Result<()> {
    let of = |execution: &Execution| {
        let Execution { instructions, charge, cycles, memory, stable_calls, .. } = execution;
        (*instructions, *charge, *cycles, *memory, *stable_calls)
    };
    let overflows = |execution: &Execution| {
        execution.outcome.as_ref().is_err_and(|reject| reject.message.contains("stack overflow"))
    };
    if normal.outcome != profiled.outcome || of(normal) != of(profiled) {
        if overflows(normal) || overflows(profiled) {
            bail!(
                "its stack overflows, and functions with a profile need more of it, so there is no \
                 profile; stablebench call shows what it costs"
            );
        }
        bail!(
            "the profiled message differs ({:?} instead of {:?}): this is a bug, unless it exhausted \
             its stack",
            of(profiled),
            of(normal)
        );
    }
    Ok(())
}

/// Compares a profiled message with the normally executed one, and the profile with the counts.
pub fn check(
    normal: &Execution,
    profiled: &Execution,
    profile: &Profile,
    span: Span,
) -> Result<()> {
    check_equal(normal, profiled)?;
    let counted = match span {
        Span::Message => normal.instructions,
        Span::Between { from, to } => to - from,
    };
    let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
    ensure!(
        sum == counted.get() && profile.instructions == counted,
        "the profile contains {sum} instructions, but {counted} were counted: this is a bug"
    );
    Ok(())
}

/// Returns the profile of executions, of which each follows its cause.
///
/// # Errors
///
/// If the instructions do not add up.
pub fn of_executions(executions: &[Executed]) -> Result<Flame> {
    let mut flame = Flame::default();
    if let [Executed { execution, .. }] = executions
        && let Some(profile) = &execution.profile
    {
        flame.add(profile)?;
        return Ok(flame);
    }
    // The frame of each execution, that of its parent, and its depth.
    let mut frames: BTreeMap<u64, (usize, Option<usize>, u64)> = BTreeMap::new();
    for executed in executions {
        let cause = executed.cause.and_then(|cause| frames.get(&cause));
        let (parent, depth) = match cause {
            None => (None, 1),
            Some((_, parent, MAX_NESTED)) => {
                flame.too_deep += 1;
                (*parent, MAX_NESTED)
            }
            Some((frame, _, depth)) => (Some(*frame), depth + 1),
        };
        let frame = flame.add_execution(parent, executed)?;
        frames.insert(executed.number, (frame, parent, depth));
    }
    Ok(flame)
}

/// Compares profiled executions with the same ones without a profile, and their profiles with the
/// counts.
///
/// # Errors
///
/// If anything differs.
pub fn compare(normal: &[Executed], profiled: &[Executed]) -> Result<()> {
    ensure!(
        normal.len() == profiled.len(),
        "{} executions were profiled instead of {}: this is a bug",
        profiled.len(),
        normal.len()
    );
    for (one, other) in normal.iter().zip(profiled) {
        let of = |it: &Executed| (it.number, it.cause, it.to_string(), it.cycles_sent);
        if of(one) != of(other) {
            bail!("{other} was profiled instead of {one}, or differs: this is a bug");
        }
        match &other.execution.profile {
            Some(profile) => check(&one.execution, &other.execution, profile, Span::Message)?,
            None => check_equal(&one.execution, &other.execution)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stablebench_replica::subnet::{Executed, Function as Ran};
    use stablebench_replica::{
        Cycles, ErrorCode, Execution, Frame, FrameKind, Instructions, Node, Principal, Profile,
        Reject,
    };

    use super::flame::{Function, HEAP_PAGES};
    use super::*;
    use crate::terminal::Terminal;

    /// `a` calls `b` and `c`, which calls `a`; two functions are called `b`.
    fn profile() -> Profile {
        let names = ["a", "b", "c; d", "b", "e 5"];
        let kind = |index: usize| FrameKind::Function(index as u32);
        let frame =
            |(index, name): (usize, &&str)| Frame { kind: kind(index), name: (*name).to_owned() };
        let node = |parent, frame, calls, instructions| Node {
            parent,
            frame,
            calls,
            instructions: Instructions(instructions),
        };
        Profile {
            frames: names.iter().enumerate().map(frame).collect(),
            nodes: vec![
                node(None, 0, 1, 10),
                node(Some(0), 1, 2, 20),
                node(Some(0), 2, 1, 0),
                node(Some(2), 0, 1, 30),
                node(Some(0), 3, 3, 5),
                node(Some(3), 4, 1, 7),
            ],
            instructions: Instructions(72),
            heap_pages: Instructions(2_000),
            folded: 1,
        }
    }

    fn flame(messages: usize) -> Flame {
        let mut flame = Flame::default();
        (0..messages).for_each(|_| flame.add(&profile()).unwrap());
        flame
    }

    fn heading() -> Heading {
        Heading { title: "<title> & more".to_owned(), command: "stablebench profile".to_owned() }
    }

    #[test]
    fn stacks_are_joined_by_names() {
        let flame = flame(2);
        assert_eq!((flame.messages, flame.instructions, flame.heap_pages), (2, 144, 4_000));
        let expected = "[heap pages changed] 4000\na 20\na;b 50\na;c: d;a 60\na;c: d;a;e_5 14\n";
        assert_eq!(folded(&flame), expected);
    }

    #[test]
    fn recursive_calls_are_counted_once() {
        let of =
            |name: &str, calls, own, total| Function { name: name.to_owned(), calls, own, total };
        let expected = [
            of(HEAP_PAGES, 1, 2_000, 2_000),
            of("a", 2, 40, 72),
            of("b", 5, 25, 25),
            of("e 5", 1, 7, 7),
            of("c; d", 1, 0, 37),
        ];
        assert_eq!(flame(1).functions(), expected);
    }

    #[test]
    fn a_profile_that_does_not_add_up_is_refused() {
        let wrong = Profile { instructions: Instructions(73), ..profile() };
        let error = Flame::default().add(&wrong).unwrap_err().to_string();
        assert!(error.contains("contains 2072 instructions, not 2073"), "{error}");
    }

    #[test]
    fn the_most_expensive_functions() {
        let expected = "  share              self      with callees         calls  function
 96.5 %             2 000             2 000             1  [heap pages changed]
  1.9 %                40                72             2  a
  1.2 %                25                25             5  b
  0.3 %                 7                 7             1  e 5
  0.0 %                 0                37             1  c; d
100.0 %             2 072
1 calls were too deep, or had too many kinds of stacks, to be recorded: they are part of their callers
";
        assert_eq!(table(&flame(1), Terminal::default()), expected);
        let narrow = table(&flame(1), Terminal { colour: false, width: Some(80) });
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }

    #[test]
    fn differences_have_both_numbers() {
        let mut after = profile();
        after.nodes.truncate(3);
        after.nodes[2].instructions = Instructions(9);
        (after.instructions, after.heap_pages) = (Instructions(39), Instructions(0));
        let mut other = Flame::default();
        other.add(&after).unwrap();
        let expected = "[heap pages changed] 2000 0\na 10 10\na;b 25 20\na;c: d 0 9\na;c: d;a 30 0\n\
                        a;c: d;a;e_5 7 0\n";
        assert_eq!(difference(&flame(1), &other), expected);
        let picture = svg_of_difference(&flame(1), &other, &heading()).unwrap();
        assert!(picture.contains("2 072 instructions before, 39 after"), "{picture}");
    }

    #[test]
    fn a_picture_is_deterministic_and_complete() {
        let picture = svg(&flame(1), &heading()).unwrap();
        assert_eq!(picture, svg(&flame(1), &heading()).unwrap());
        for part in [
            "&lt;title&gt; &amp; more",
            "72 instructions and 2 000 for heap pages · stablebench profile",
            "[heap pages changed] (2,000 instructions, 96.53%)",
            "a (72 instructions, 3.47%)",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
    }

    #[test]
    fn json_contains_the_tree() {
        let text = json(&flame(1), &heading()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["instructions"], 72);
        let nodes = value["nodes"].as_array().unwrap();
        let sum: u64 = nodes.iter().map(|node| node["self"].as_u64().unwrap()).sum();
        assert_eq!(sum, 2_072);
        let function = |node: &serde_json::Value| {
            let place = node["function"].as_u64().unwrap() as usize;
            value["functions"][place]["name"].as_str().unwrap().to_owned()
        };
        let names: Vec<String> = nodes.iter().map(function).collect();
        assert_eq!(names, ["a", "b", "c; d", "a", "e 5", HEAP_PAGES]);
        assert_eq!(nodes[3]["parent"], 2);
        assert_eq!(nodes[0]["total"], 72);
    }

    /// The weights of the samples are the counts, even if one sample cannot represent them.
    #[test]
    fn the_firefox_profile_contains_all_instructions() {
        let mut large = profile();
        large.nodes[0].instructions = Instructions(10 + 5_000_000_000);
        large.instructions = Instructions(72 + 5_000_000_000);
        let mut flame = Flame::default();
        flame.add(&large).unwrap();
        let text = firefox(&flame, &heading()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let weights = value["threads"][0]["samples"]["weight"].as_array().unwrap();
        let sum: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
        assert_eq!(sum as u64, flame.all());
        assert_eq!(weights.len(), 4 + 3);
    }

    /// An execution with the profile of above, or without one.
    fn executed(number: u64, cause: Option<u64>, function: Ran, with_profile: bool) -> Executed {
        let profile = profile();
        let execution = Execution {
            outcome: Ok(Vec::new()),
            admitted: true,
            instructions: profile.instructions,
            charge: profile.instructions + profile.heap_pages,
            cycles: Cycles(0),
            pages: Default::default(),
            readings: Vec::new(),
            memory: Default::default(),
            stable_pages: Vec::new(),
            stable_calls: Default::default(),
            system_calls: None,
            functions: Vec::new(),
            printed: Vec::new(),
            printed_before: 0,
            profile: with_profile.then(|| Box::new(profile)),
            wall: Duration::ZERO,
        };
        let canister = Principal::management_canister();
        let transmission = Cycles(0);
        Executed { number, cause, canister, function, cycles_sent: 0, transmission, execution }
    }

    fn update(number: u64, cause: Option<u64>) -> Executed {
        executed(number, cause, Ran::Update("go".to_owned()), true)
    }

    #[test]
    fn an_execution_alone_has_no_frame() {
        let found = of_executions(&[update(7, None)]).unwrap();
        assert_eq!(folded(&found), folded(&flame(1)));
        assert_eq!(found.counted(), None);
    }

    #[test]
    fn executions_are_nested_by_cause() {
        let executions = [
            executed(3, None, Ran::Heartbeat, true),
            update(4, None),
            // Two with the same name share a frame.
            executed(5, Some(4), Ran::ReplyCallback, true),
            executed(6, Some(4), Ran::ReplyCallback, true),
            executed(7, Some(6), Ran::Cleanup, true),
            // The cause is not part of the call.
            executed(8, Some(1), Ran::RejectCallback, true),
        ];
        let found = of_executions(&executions).unwrap();
        assert_eq!(found.counted(), Some("6 executions".to_owned()));
        assert_eq!((found.instructions, found.heap_pages), (6 * 72, 6 * 2_000));
        let sums: Vec<u64> = [
            "heartbeat of aaaaa-aa;",
            "go of aaaaa-aa;a",
            "go of aaaaa-aa;[heap pages changed]",
            "go of aaaaa-aa;reply callback of aaaaa-aa;a",
            "go of aaaaa-aa;reply callback of aaaaa-aa;cleanup of aaaaa-aa;",
            "reject callback of aaaaa-aa;",
        ]
        .into_iter()
        .map(|start| {
            let lines = folded(&found);
            let lines = lines.lines().filter(|line| line.starts_with(start));
            lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
        })
        .collect();
        assert_eq!(sums, [2_072, 72, 2_000, 144, 2_072, 2_072]);
        let reply = "reply callback of aaaaa-aa".to_owned();
        let function = found.functions().into_iter().find(|function| function.name == reply);
        let expected = Function { name: reply, calls: 2, own: 0, total: 3 * 2_072 };
        assert_eq!(function, Some(expected));
        assert!(
            !table(&found, Terminal::default()).contains("aaaaa-aa"),
            "executions are in the tree"
        );
    }

    #[test]
    fn executions_without_functions_keep_their_instructions() {
        let executions = [
            update(0, None),
            executed(1, Some(0), Ran::Management("install_code".to_owned()), false),
            executed(2, Some(1), Ran::ReplyCallback, false),
        ];
        let found = of_executions(&executions).unwrap();
        assert_eq!((found.instructions, found.heap_pages), (3 * 72, 3 * 2_000));
        assert_eq!(found.all(), found.nodes.iter().map(|node| node.own).sum::<u64>());
        assert_eq!(found.without_functions, 1);
        let table = table(&found, Terminal::default());
        assert!(table.contains("install_code (management canister) of aaaaa-aa"), "{table}");
        assert!(table.contains("recorded before them: 1\n"), "{table}");
    }

    #[test]
    fn a_long_chain_of_causes_is_cut() {
        let chain: Vec<Executed> =
            (0..150).map(|number| update(number, number.checked_sub(1))).collect();
        let found = of_executions(&chain).unwrap();
        assert_eq!(found.too_deep, 50);
        let frame = "go of aaaaa-aa;";
        let lines = folded(&found);
        let deepest = lines.lines().map(|line| line.matches(frame).count()).max();
        assert_eq!(deepest, Some(100));
        assert_eq!(found.all(), 150 * 2_072);
        assert!(table(&found, Terminal::default()).contains("nested 100 deep: 50\n"));
    }

    #[test]
    fn a_profiled_call_must_equal_the_normal_one() {
        let normal = [update(0, None), update(1, Some(0))];
        compare(&normal, &normal).unwrap();
        let differing = |change: &dyn Fn(&mut Executed)| {
            let mut profiled = normal.clone();
            change(&mut profiled[1]);
            compare(&normal, &profiled).unwrap_err().to_string()
        };
        assert!(compare(&normal, &normal[..1]).unwrap_err().to_string().contains("1 executions"));
        for change in [
            &|it: &mut Executed| it.cause = None,
            &|it: &mut Executed| it.cycles_sent = 1,
            &|it: &mut Executed| it.function = Ran::Heartbeat,
            &|it: &mut Executed| it.execution.cycles = Cycles(1),
            &|it: &mut Executed| it.execution.outcome = Ok(vec![1]),
            &|it: &mut Executed| {
                it.execution.profile.as_mut().unwrap().nodes.truncate(1);
            },
        ] as [&dyn Fn(&mut Executed); 6]
        {
            assert!(differing(change).contains("this is a bug"));
        }
        // Functions with a profile need more stack.
        let overflow = differing(&|it| {
            let message = "Canister trapped: stack overflow".to_owned();
            it.execution.outcome = Err(Reject { code: ErrorCode::CanisterTrapped, message });
        });
        assert!(overflow.contains("its stack overflows"), "{overflow}");
    }
}
