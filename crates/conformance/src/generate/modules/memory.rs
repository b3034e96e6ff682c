//! The heap and the table: sizes, growth, bulk operators.

use stablebench_workload::Rng;

use super::{Group, Measurement, OPERANDS, times};

/// Bytes of the passive data segment from which `memory.init` takes.
const SEGMENT: u64 = 64;

pub(super) fn group(rng: &mut Rng) -> Group {
    let bulk = ["i32.const", "i32.const", "i32.const"];
    let bulk = |operator| [&bulk[..], &[operator]].concat();
    let mut measurements = vec![
        Measurement::of("memory.size", "(drop (memory.size))", &["memory.size", "drop"]),
        Measurement::of("data.drop", "(data.drop $dropped)", &["data.drop"]),
        Measurement::of("elem.drop", "(elem.drop $elements)", &["elem.drop"]),
        Measurement::of("table.size", "(drop (table.size $table))", &["table.size", "drop"]),
        Measurement::of(
            "table.get",
            format!("(drop (table.get $table (i32.const {})))", rng.below(4)),
            &["i32.const", "table.get", "drop"],
        ),
    ];
    for pages in [0, 1 + rng.below(3), 1 << 20] {
        let code = format!("(drop (memory.grow (i32.const {pages})))");
        let name = format!("memory.grow_by_{pages}");
        measurements.push(Measurement::of(name, code, &["i32.const", "memory.grow", "drop"]));
    }
    for bytes in [0, 1, 1 + rng.below(4_096), rng.below(OPERANDS)] {
        let (to, from) = (rng.below(OPERANDS), rng.below(OPERANDS));
        let fill = format!("(memory.fill (i32.const {to}) (i32.const 7) (i32.const {bytes}))");
        let copy = format!("(memory.copy (i32.const {to}) (i32.const {from}) (i32.const {bytes}))");
        measurements.extend([
            Measurement::of(format!("memory.fill_of_{bytes}"), fill, &bulk("memory.fill"))
                .about(bytes),
            Measurement::of(format!("memory.copy_of_{bytes}"), copy, &bulk("memory.copy"))
                .about(bytes),
        ]);
    }
    for bytes in [0, 1, rng.below(SEGMENT), SEGMENT] {
        let (to, from) = (rng.below(OPERANDS), rng.below(SEGMENT - bytes + 1));
        let init =
            format!("(memory.init $bytes (i32.const {to}) (i32.const {from}) (i32.const {bytes}))");
        measurements.push(
            Measurement::of(format!("memory.init_of_{bytes}"), init, &bulk("memory.init"))
                .about(bytes),
        );
    }
    measurements.sort_by(|one, other| one.name.cmp(&other.name));
    measurements.dedup_by(|one, other| one.name == other.name);
    for measurement in &mut measurements {
        measurement.times = times(rng);
    }
    Group { name: "memory", imports: String::new(), measurements, argument: Vec::new() }
}
