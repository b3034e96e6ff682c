//! Records answers as expected answers.

use std::path::Path;

use stablebench_conformance::{Answer, Answers, Case, Error, Expect, Target, answers};

/// Recording was interrupted.
#[derive(Debug, thiserror::Error)]
#[error("after {} recorded cases: {cause}", .recorded.len())]
pub struct Interrupted {
    /// The cases that were recorded.
    pub recorded: Vec<Case>,
    /// The cause.
    #[source]
    pub cause: Error,
}

/// Runs the cases, whose paths are relative to `directory`, and replaces their expected answers by the
/// actual ones. `begin` is called before each case.
///
/// # Errors
///
/// If a module cannot be read, or the target failed; the error has the cases recorded so far.
pub fn record(
    target: &mut dyn Target,
    cases: Vec<Case>,
    directory: &Path,
    mut begin: impl FnMut(&Case),
) -> Result<Vec<Case>, Interrupted> {
    let mut recorded = Vec::new();
    for mut case in cases {
        begin(&case);
        match answers(target, &case, directory) {
            Ok(answers) => fill_in(&mut case, &answers),
            Err(cause) => return Err(Interrupted { recorded, cause }),
        }
        recorded.push(case);
    }
    Ok(recorded)
}

fn fill_in(case: &mut Case, answers: &Answers) {
    match answers {
        Answers::Refused(answer) => {
            case.install = Some(expectation(answer));
            for call in &mut case.calls {
                call.expect = None;
            }
        }
        Answers::Calls(answers) => {
            case.install = None;
            for (call, answer) in case.calls.iter_mut().zip(answers) {
                call.expect = Some(expectation(answer));
            }
        }
    }
}

/// The form of an answer in a file.
fn expectation(answer: &Answer) -> Expect {
    let cycles_charged = answer.cycles.unwrap_or_default();
    match &answer.outcome {
        Ok(reply) => Expect::Reply { hex: reply.clone(), counts: counts(reply), cycles_charged },
        Err(reject) => Expect::Reject {
            code: reject.code.clone(),
            message: reject.message.clone(),
            cycles_charged,
        },
    }
}

/// The reply as numbers, if its length fits and it is not Candid.
fn counts(reply: &[u8]) -> Option<Vec<u64>> {
    let (numbers, rest) = reply.as_chunks::<8>();
    let is_numbers = rest.is_empty() && !reply.starts_with(b"DIDL");
    is_numbers.then(|| numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_conformance::{Call, Canister, Failure, Installed, Kind, Reject, Source};

    /// A replica that echoes the arguments of a number of messages and then fails.
    struct Echo(usize);

    struct Echoing(usize);

    impl Target for Echo {
        fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
            let refused = Reject { code: "No".to_owned(), message: "first\nsecond".to_owned() };
            Ok(match wasm.len() {
                8 => Installed::Refused(Answer { outcome: Err(refused), cycles: None }),
                _ => Installed::Canister(Box::new(Echoing(self.0))),
            })
        }
    }

    impl Canister for Echoing {
        fn call(&mut self, _: Kind, _: &str, arg: &[u8]) -> Result<Answer, Failure> {
            self.0 = self.0.checked_sub(1).ok_or("the server is gone")?;
            Ok(Answer { outcome: Ok(arg.to_vec()), cycles: Some(5) })
        }
    }

    fn case(wat: &str, calls: usize) -> Case {
        let call = |number: usize| Call::new(Kind::Update, "go", [number as u8; 8]);
        Case {
            name: format!("with {calls}"),
            group: "tests".to_owned(),
            module: Source::Wat(wat.to_owned()),
            install: None,
            calls: (0..calls).map(call).collect(),
        }
    }

    #[test]
    fn answers_replace_expectations() {
        let cases = vec![case("(module (memory 1))", 2), case("(module)", 1)];
        let recorded = record(&mut Echo(2), cases, Path::new("."), |_| {}).unwrap();
        let reply = Expect::Reply {
            hex: vec![1; 8],
            counts: Some(vec![0x0101_0101_0101_0101]),
            cycles_charged: 5,
        };
        assert_eq!(recorded[0].calls[1].expect, Some(reply));
        let reject = Expect::Reject {
            code: "No".to_owned(),
            message: "first\nsecond".to_owned(),
            cycles_charged: 0,
        };
        assert_eq!(recorded[1].install, Some(reject));
        assert_eq!(recorded[1].calls[0].expect, None);
        // Recorded again without a refusal, nothing of the first recording is left.
        let again = vec![Case { module: recorded[0].module.clone(), ..recorded[1].clone() }];
        let again = record(&mut Echo(2), again, Path::new("."), |_| {}).unwrap();
        assert_eq!(again[0].install, None);
        assert!(again[0].calls[0].expect.is_some());
    }

    #[test]
    fn cases_recorded_before_a_failure_are_kept() {
        let wat = "(module (memory 1))";
        let cases = vec![case(wat, 1), case(wat, 3), case(wat, 1)];
        let mut begun = 0;
        let ended = record(&mut Echo(2), cases, Path::new("."), |_| begun += 1).unwrap_err();
        assert_eq!((begun, ended.recorded.len()), (2, 1));
        assert!(ended.to_string().contains("the server is gone"), "{ended}");
    }

    #[test]
    fn counts_are_whole_numbers() {
        assert_eq!(counts(&[1, 0, 0, 0, 0, 0, 0, 0]), Some(vec![1]));
        assert_eq!(counts(&[1; 9]), None);
        assert_eq!(counts(b""), Some(vec![]));
        assert_eq!(counts(b"DIDL\0\x01\x78\0"), None);
    }
}
