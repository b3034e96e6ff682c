//! Control flow, variables, references: operators that need context.

use stablebench_workload::Rng;

use super::measurement::{Group, Measurement, times};

/// Operators that are not measured, with the reason.
pub const UNMEASURED: &[(&str, &str)] = &[(
    "unreachable",
    "the message ends, so the counter cannot be read after it; every module has a method of that \
     name, whose cycles include the price",
)];

pub(super) fn group(rng: &mut Rng) -> Group {
    let mut measurements = variables(rng);
    measurements.extend(branches(rng));
    measurements.extend(calls());
    measurements.extend([loops(rng), nested(rng)]);
    for measurement in &mut measurements {
        measurement.times = times(rng);
    }
    Group { name: "control", imports: String::new(), measurements, argument: Vec::new() }
}

fn variables(rng: &mut Rng) -> Vec<Measurement> {
    let mut number = || rng.next_u64() >> 40;
    vec![
        Measurement::of("nop", "nop", &["nop"]),
        Measurement::of("drop", format!("(drop (i32.const {}))", number()), &["i32.const", "drop"]),
        Measurement::of(
            "i64.const",
            format!("(drop (i64.const -{}))", number()),
            &["i64.const", "drop"],
        ),
        Measurement::of(
            "f32.const",
            format!("(drop (f32.const {}.25))", number()),
            &["f32.const", "drop"],
        ),
        Measurement::of("f64.const", "(drop (f64.const nan))", &["f64.const", "drop"]),
        Measurement::of(
            "v128.const",
            format!("(drop (v128.const i64x2 {} 0))", number()),
            &["v128.const", "drop"],
        ),
        Measurement::of("local.get", "(drop (local.get $narrow))", &["local.get", "drop"]),
        Measurement::of(
            "local.set",
            "(local.set $narrow (i32.const 1))",
            &["i32.const", "local.set"],
        ),
        Measurement::of(
            "local.tee",
            "(drop (local.tee $wide (i64.const 1)))",
            &["i64.const", "local.tee", "drop"],
        ),
        Measurement::of("global.get", "(drop (global.get $wide))", &["global.get", "drop"]),
        Measurement::of(
            "global.set",
            "(global.set $narrow (i32.const 1))",
            &["i32.const", "global.set"],
        ),
        Measurement::of(
            "select_of_a_type",
            format!(
                "(drop (select (result i64) (i64.const 1) (i64.const 2) (i32.const {})))",
                number() % 2
            ),
            &["i64.const", "i64.const", "i32.const", "typed_select", "drop"],
        ),
        Measurement::of("ref.null", "(drop (ref.null func))", &["ref.null", "drop"]),
        Measurement::of("ref.func", "(drop (ref.func $empty))", &["ref.func", "drop"]),
        Measurement::of("ref.is_null", "(drop (ref.is_null (ref.null func)))", &["ref.is_null"])
            .compared_with("(drop (ref.null func))", &[]),
    ]
}

fn branches(rng: &mut Rng) -> Vec<Measurement> {
    let case = rng.below(3);
    vec![
        Measurement::of("block", "(block nop)", &["block", "nop", "end"]),
        Measurement::of(
            "if_taken",
            "(if (i32.const 1) (then nop nop))",
            &["i32.const", "if", "nop", "nop"],
        ),
        Measurement::of("if_not_taken", "(if (i32.const 0) (then nop))", &["i32.const", "if"]),
        Measurement::of(
            "else_not_taken",
            "(if (i32.const 1) (then nop) (else nop nop))",
            &["i32.const", "if", "nop", "else"],
        ),
        Measurement::of(
            "else_taken",
            "(if (i32.const 0) (then nop) (else nop nop))",
            &["i32.const", "if", "else", "nop", "nop"],
        ),
        // The code after a branch is another run, and never charged.
        Measurement::of("br", "(block (br 0) nop nop)", &["block", "br"]),
        Measurement::of(
            "br_if_taken",
            "(block (br_if 0 (i32.const 1)) nop)",
            &["block", "i32.const", "br_if"],
        ),
        Measurement::of(
            "br_if_not_taken",
            "(block (br_if 0 (i32.const 0)) nop)",
            &["block", "i32.const", "br_if", "nop"],
        ),
        Measurement::of(
            "br_table",
            format!("(block (block (block (br_table 0 1 2 (i32.const {case}))) nop) nop)"),
            &[&["block", "block", "block", "i32.const", "br_table"], &["nop"; 2][case as usize..]]
                .concat(),
        ),
        Measurement::of("loop", "(loop nop)", &["loop", "nop"]),
    ]
}

fn calls() -> Vec<Measurement> {
    vec![
        Measurement::of("call", "(call $empty)", &["call"]).entering(1),
        Measurement::of(
            "call_indirect",
            "(call_indirect (type $plain) (i32.const 0))",
            &["i32.const", "call_indirect"],
        )
        .entering(1),
        Measurement::of("return", "(call $returns)", &["return"])
            .compared_with("(call $empty)", &[]),
        Measurement::of("return_call", "(call $tail)", &["return_call"])
            .compared_with("(call $empty)", &[])
            .entering(1),
        Measurement::of(
            "return_call_indirect",
            "(call $tail_indirect)",
            &["i32.const", "return_call_indirect"],
        )
        .compared_with("(call $empty)", &[])
        .entering(1),
    ]
}

/// Operators of one iteration of a loop that counts down.
const COUNTED: [&str; 6] = ["local.get", "i32.const", "i32.sub", "local.tee", "br_if", "nop"];

fn loops(rng: &mut Rng) -> Measurement {
    let rounds = 1 + rng.below(100);
    let code = format!(
        "(local.set $narrow (i32.const {rounds})) (loop $again nop (br_if $again \
         (local.tee $narrow (i32.sub (local.get $narrow) (i32.const 1)))))"
    );
    let mut operators = vec!["i32.const", "local.set", "loop"];
    operators.extend(COUNTED.repeat(rounds as usize));
    Measurement::of("loop_counted", code, &operators)
}

/// A loop inside of a loop, each left by a branch out of a block.
fn nested(rng: &mut Rng) -> Measurement {
    let (outer, inner) = (1 + rng.below(9), 1 + rng.below(9));
    let code = format!(
        "(local.set $wide (i64.const {outer})) (block $done (loop $outer \
         (br_if $done (i64.eqz (local.get $wide))) \
         (local.set $wide (i64.sub (local.get $wide) (i64.const 1))) \
         (local.set $narrow (i32.const {inner})) (loop $again nop (br_if $again \
         (local.tee $narrow (i32.sub (local.get $narrow) (i32.const 1))))) (br $outer)))"
    );
    let tested = ["local.get", "i64.eqz", "br_if"];
    let counted = ["local.get", "i64.const", "i64.sub", "local.set", "i32.const", "local.set"];
    let mut operators = vec!["i64.const", "local.set", "block", "loop"];
    for _ in 0..outer {
        operators.extend(tested);
        operators.extend(counted);
        operators.push("loop");
        operators.extend(COUNTED.repeat(inner as usize));
        operators.push("br");
    }
    operators.extend(tested);
    Measurement::of("loop_nested", code, &operators)
}
