//! Two replicas in lockstep: every message goes to both, and the run ends at the first answer
//! that differs.
//!
//! The messages until then are saved twice as files of recorded cases, with the answers of each
//! replica: either file can be replayed on the other replica.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use stablebench_conformance::{Answers, Call, Case, Expect, MessageKind, Outcome, Source};

use super::{Answer, Canister, Cost, Identity, Messages, Readings, Reject, Replica};

/// The file name of the module.
const MODULE: &str = "canister.wasm";

/// A replica that returns the first replica's answers if the second's are equal.
pub struct Lockstep {
    replicas: [Box<dyn Replica + Send>; 2],
    report: Report,
}

/// The data for reporting a difference.
#[derive(Clone)]
struct Report {
    names: [String; 2],
    /// `true` if both charge the same cycles.
    cycles: bool,
    /// The folder for differing sequences.
    directory: PathBuf,
}

impl Lockstep {
    /// Runs both replicas. `directory` is created once there is a difference.
    pub fn new(replicas: [Box<dyn Replica + Send>; 2], directory: PathBuf) -> Self {
        let identities = replicas.each_ref().map(|replica| replica.identity());
        let cycles = identities[0].subnet == identities[1].subnet;
        Self { replicas, report: Report { names: identities.map(|it| it.kind), cycles, directory } }
    }
}

impl Replica for Lockstep {
    fn identity(&self) -> Identity {
        self.replicas[0].identity()
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let [first, second] = &self.replicas;
        Ok(Box::new(Both {
            sides: [first.install(wasm)?, second.install(wasm)?],
            history: History { wasm: wasm.into(), sent: Vec::new(), report: self.report.clone() },
        }))
    }
}

/// A canister, or a fork of it, on both.
struct Both<M> {
    sides: [M; 2],
    history: History,
}

impl<M: Messages> Messages for Both<M> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let [first, second] = &mut self.sides;
        let answers = [first.update(method, argument)?, second.update(method, argument)?];
        self.history.agree(MessageKind::Update, method, argument, answers)
    }

    /// Returns the real replica's id: it may have been sent messages in earlier runs.
    fn call_id(&mut self) -> u64 {
        self.sides[0].call_id()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let [first, second] = &mut self.sides;
        let answers = [first.query(method, argument)?, second.query(method, argument)?];
        self.history.agree(MessageKind::Query, method, argument, answers)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        let [first, second] = &mut self.sides;
        let answers = [upgraded(first.upgrade())?, upgraded(second.upgrade())?];
        let argument = candid::encode_args(())?;
        let answer = self.history.agree(MessageKind::Upgrade, "", &argument, answers)?;
        answer.outcome.context("upgrading failed")?;
        Ok(answer.cost)
    }
}

/// Returns the answer to an upgrade as in recorded cases: an empty reply. Its cost is left out,
/// because recorded cases do not compare it.
fn upgraded(result: Result<Cost>) -> Result<Answer> {
    let outcome = match result {
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(error.downcast::<Reject>()?),
    };
    Ok(Answer { outcome, cost: Cost::default(), readings: Readings::default() })
}

impl Canister for Both<Box<dyn Canister>> {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        let [first, second] = &mut self.sides;
        let sides = [first.fork()?, second.fork()?];
        Ok(Box::new(Both { sides, history: self.history.clone() }))
    }
}

/// The messages that a canister was sent since it was installed.
#[derive(Clone)]
struct History {
    wasm: Arc<[u8]>,
    sent: Vec<[Call; 2]>,
    report: Report,
}

impl History {
    /// Records both answers, and returns the first if they are equal.
    fn agree(
        &mut self,
        kind: MessageKind,
        method: &str,
        argument: &[u8],
        answers: [Answer; 2],
    ) -> Result<Answer> {
        let call = Call::new(kind, method, argument);
        let [first, second] = &answers;
        let outcome = self.compared(&call, first, second);
        self.sent.push(
            answers.each_ref().map(|answer| Call { expect: Some(expect(answer)), ..call.clone() }),
        );
        let [first, _] = answers;
        let Some(difference) = outcome.differences.first() else {
            return Ok(first);
        };
        let saved = self.save().context("the calls that led to a difference are lost")?;
        let [one, other] = &self.report.names;
        let what = if method.is_empty() { kind.name() } else { method };
        bail!(
            "{one} and {other} differ in the answer to {what}, call {} of the canister:\n  \
             {one}: {}\n  {other}: {}\nthe calls are saved with the answers of each; replay them \
             with: conformance check {saved}",
            self.sent.len(),
            difference.expected,
            difference.got,
        )
    }

    /// Compares the second answer with the first as with a recorded one.
    fn compared(&self, call: &Call, first: &Answer, second: &Answer) -> Outcome {
        let paid = |answer: &Answer| {
            let cycles = if self.report.cycles { answer.cost.cycles } else { 0 };
            Answer { cost: Cost { cycles, ..answer.cost }, ..answer.clone() }
        };
        let (first, second) = (paid(first), paid(second));
        let call = Call { expect: Some(expect(&first)), ..call.clone() };
        let answer = stablebench_conformance::Answer {
            outcome: second.outcome.map_err(|reject| stablebench_conformance::Reject {
                code: reject.code,
                message: reject.message,
            }),
            cycles: Some(u128::from(second.cost.cycles)),
        };
        let mut outcome = Outcome::default();
        outcome.compare(&case("", vec![call]), &Answers::Calls(vec![answer]));
        outcome
    }

    /// Saves both sequences and returns the path of the first.
    fn save(&self) -> Result<String> {
        let directory = &self.report.directory;
        fs::create_dir_all(directory)?;
        fs::write(directory.join(MODULE), &self.wasm)?;
        for (at, name) in self.report.names.iter().enumerate() {
            let calls = self.sent.iter().map(|calls| calls[at].clone()).collect();
            let case = case(&format!("as {name} answered"), calls);
            stablebench_conformance::write(&file(directory, name), &[case])?;
        }
        Ok(file(directory, &self.report.names[0]).display().to_string())
    }
}

fn file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

fn expect(answer: &Answer) -> Expect {
    let cycles = u128::from(answer.cost.cycles);
    match &answer.outcome {
        Ok(reply) => Expect::Reply { hex: reply.clone(), counts: None, cycles_charged: cycles },
        Err(reject) => Expect::Reject {
            code: reject.code.clone(),
            message: reject.message.clone(),
            cycles_charged: cycles,
        },
    }
}

fn case(name: &str, calls: Vec<Call>) -> Case {
    Case {
        name: name.to_owned(),
        group: "difference".to_owned(),
        module: Source::Wasm(MODULE.into()),
        install: None,
        calls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes arguments. The answer after `left` messages costs more.
    #[derive(Clone)]
    struct Echo {
        name: &'static str,
        left: usize,
    }

    impl Echo {
        fn answer(&mut self, argument: &[u8]) -> Answer {
            self.left = self.left.saturating_sub(1);
            let cycles = if self.left == 0 { 8 } else { 7 };
            let cost = Cost { cycles, inside: None };
            Answer { outcome: Ok(argument.to_vec()), cost, readings: Readings::default() }
        }
    }

    impl Replica for Echo {
        fn identity(&self) -> Identity {
            Identity {
                kind: self.name.to_owned(),
                version: "1".to_owned(),
                subnet: "application".to_owned(),
                rules: "2025-10".to_owned(),
            }
        }

        fn install(&self, _: &[u8]) -> Result<Box<dyn Canister>> {
            Ok(Box::new(self.clone()))
        }
    }

    impl Messages for Echo {
        fn update(&mut self, _: &str, argument: &[u8]) -> Result<Answer> {
            Ok(self.answer(argument))
        }

        fn query(&mut self, _: &str, argument: &[u8]) -> Result<Answer> {
            Ok(self.answer(argument))
        }

        /// Fails where an answer would cost more.
        fn upgrade(&mut self) -> Result<Cost> {
            let answer = self.answer(&[]);
            if answer.cost.cycles == 8 {
                let reject = Reject { code: "Spoiled".to_owned(), message: "no".to_owned() };
                return Err(reject).context("upgrading failed");
            }
            Ok(Cost::default())
        }
    }

    impl Canister for Echo {
        fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
            Ok(Box::new(self.clone()))
        }
    }

    fn lockstep(second: usize, directory: &Path) -> Lockstep {
        let first = Echo { name: "first", left: usize::MAX };
        let second = Echo { name: "second", left: second };
        Lockstep::new([Box::new(first), Box::new(second)], directory.join("difference"))
    }

    #[test]
    fn equal_answers_are_returned_and_nothing_is_saved() {
        let directory = tempfile::tempdir().unwrap();
        let mut canister = lockstep(usize::MAX, directory.path()).install(b"module").unwrap();
        assert_eq!(canister.update("a", b"1").unwrap().outcome.unwrap(), b"1");
        assert_eq!(canister.fork().unwrap().query("b", b"2").unwrap().outcome.unwrap(), b"2");
        assert!(!directory.path().join("difference").exists());
    }

    #[test]
    fn the_first_difference_is_an_error_and_both_sequences_are_saved() {
        let directory = tempfile::tempdir().unwrap();
        // The second replica's third message is more expensive.
        let mut canister = lockstep(3, directory.path()).install(b"module").unwrap();
        canister.update("a", b"1").unwrap();
        let mut fork = canister.fork().unwrap();
        fork.query("b", b"2").unwrap();
        let error = fork.update("c", b"3").unwrap_err().to_string();
        assert!(error.contains("answer to c, call 3"), "{error}");
        assert!(
            error.contains("first: reply 33 for 7") && error.contains("second: reply 33 for 8")
        );
        let saved = directory.path().join("difference");
        assert_eq!(fs::read(saved.join("canister.wasm")).unwrap(), b"module");
        for (name, last) in [("first", 7), ("second", 8)] {
            let cases = stablebench_conformance::read(&file(&saved, name)).unwrap();
            let calls = &cases[0].calls;
            let methods: Vec<&str> = calls.iter().map(|call| call.method.as_str()).collect();
            assert_eq!(methods, ["a", "b", "c"]);
            let Some(Expect::Reply { hex, cycles_charged, .. }) = &calls[2].expect else {
                panic!("{:?}", calls[2]);
            };
            assert_eq!((hex.as_slice(), *cycles_charged), (b"3".as_slice(), last));
        }
    }

    #[test]
    fn an_upgrade_is_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let mut canister = lockstep(3, directory.path()).install(b"module").unwrap();
        canister.upgrade().unwrap();
        canister.update("a", b"1").unwrap();
        let error = canister.upgrade().unwrap_err().to_string();
        assert!(error.contains("answer to upgrade, call 3"), "{error}");
        let saved = directory.path().join("difference");
        let cases = stablebench_conformance::read(&file(&saved, "second")).unwrap();
        let kinds: Vec<MessageKind> = cases[0].calls.iter().map(|call| call.kind).collect();
        assert_eq!(kinds, [MessageKind::Upgrade, MessageKind::Update, MessageKind::Upgrade]);
        assert_eq!(cases[0].calls[0].arg, candid::encode_args(()).unwrap());
        assert!(
            matches!(&cases[0].calls[2].expect, Some(Expect::Reject { code, .. }) if code == "Spoiled")
        );
    }

    #[test]
    fn an_upgrade_that_both_refuse_is_no_difference() {
        let directory = tempfile::tempdir().unwrap();
        let replica = |name| Box::new(Echo { name, left: 1 });
        let replicas = [replica("first") as Box<dyn Replica + Send>, replica("second")];
        let lockstep = Lockstep::new(replicas, directory.path().join("difference"));
        let error = lockstep.install(b"module").unwrap().upgrade().unwrap_err();
        assert_eq!(error.downcast_ref::<Reject>().unwrap().code, "Spoiled");
        assert!(!directory.path().join("difference").exists());
    }
}
