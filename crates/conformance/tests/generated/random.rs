//! Random programs end as they should, and always in the same way.

use stablebench_conformance::generate::random::cases;

use crate::answers;

#[test]
fn programs_answer_the_same_twice() {
    let (mut replies, mut traps) = (0, 0);
    let mut sums = std::collections::BTreeSet::new();
    for case in cases(1, 60) {
        let first = answers(&case);
        assert_eq!(first, answers(&case), "{}", case.name);
        for (call, answer) in case.calls.iter().zip(&first) {
            match &answer.outcome {
                Ok(reply) if call.method.is_empty() => assert!(reply.is_empty()),
                Ok(reply) => {
                    replies += 1;
                    assert_eq!(reply.len(), 16);
                    let [counter, sum] = [&reply[..8], &reply[8..]]
                        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
                    assert!(counter < 50_000_000, "{} runs for {counter}", case.name);
                    sums.insert(sum);
                }
                Err(reject) => {
                    traps += 1;
                    let code = reject.code.as_str();
                    assert!(
                        ["CanisterTrapped", "CanisterContractViolation"].contains(&code),
                        "{}: {reject:?}",
                        case.name
                    );
                }
            }
        }
    }
    assert!(replies > 150, "{replies} of 240 replied");
    assert!(traps > 2, "{traps} of 240 trapped");
    // A program may overwrite its argument before it reads it.
    assert!(sums.len() * 10 > replies * 9, "{} sums of {replies} replies", sums.len());
}
