//! The tables of the suite calls: instructions and cycles of a call, of an execution of a task, and of
//! an upgrade.
//!
//! ```text
//!   a call       (the message with calls − the same message without) / calls
//!   a task       (rounds with a task − the same rounds without) / the executions that there are more
//! ```

use anyhow::Result;

use crate::plan::{
    BENCH_CALLS, CallsSuite, FAN_OUT, KINDS, LIMIT, NO_TASK, REPLY, ROUNDS, SIZE, TASKS, UPGRADE,
};
use stablebench_suite::engines::heading;
use stablebench_suite::report::Presentation;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::{Grouped, Ratio, Short};
use stablebench_suite::results::{Case, Measured, Results};

impl Presentation for CallsSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What do calls, timers, heartbeats and upgrades cost?")
    }

    fn answer_tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let mut grids = vec![calls_in_cycles(results, style), upgrades_in_cycles(results, style)];
        grids.retain(|grid| !grid.rows.is_empty());
        Ok(grids)
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let mut sentences: Vec<String> = SENT.iter().filter_map(|of| grown(results, of)).collect();
        sentences.extend(upgraded(results));
        Some(sentences)
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            SIZE => "A call, by the size of its argument",
            REPLY => "A call, by the size of its reply",
            FAN_OUT => "Calls of one message",
            KINDS => "Messages without arguments",
            TASKS => "An execution of a task",
            UPGRADE => "An upgrade, by the rows of the canister",
            LIMIT => "The most rows on the heap with which an upgrade works",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn has_section_tables(&self) -> bool {
        false
    }

    fn lists_fixtures(&self) -> bool {
        false
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let mut grids = Vec::new();
        for section in [SIZE, REPLY, FAN_OUT] {
            let instructions = ("instructions", caused as fn(&Measured) -> Option<u64>);
            let cycles = ("cycles", cycles as fn(&Measured) -> Option<u64>);
            grids.push(calls(results, section, instructions, ("touching pages", pages), style));
            grids.push(calls(results, section, cycles, ("sending messages", sending), style));
        }
        grids.push(kinds(results));
        grids.extend(tasks(results));
        grids.push(upgrades(results, style));
        grids.extend(limit(results));
        grids.retain(|grid| !grid.rows.is_empty());
        Ok(grids)
    }
}

fn measured<'a>(
    results: &'a Results,
    section: &str,
    name: &str,
    key: &str,
) -> Option<&'a Measured> {
    results.case(section, name, key)?.measured()
}

fn header(results: &Results, section: &str, style: Style) -> Vec<String> {
    let keys = results.configurations_of(section).into_iter();
    [String::new()].into_iter().chain(keys.map(|key| style.narrow(&heading(key)))).collect()
}

/// Returns the rows of a section, with a cell for each measured case.
fn rows(results: &Results, section: &str, cell: impl Fn(&Measured) -> Cell) -> Vec<Vec<Cell>> {
    let keys = results.configurations_of(section);
    let of = |case: Option<&Case>| match case.map(|case| (case, case.measured())) {
        Some((_, Some(measured))) => cell(measured),
        Some((case, None)) => Cell::missing(&case.outcome),
        None => Cell::Absent,
    };
    let row = |name: &&str| -> Vec<Cell> {
        let cells = keys.iter().map(|key| of(results.case(section, name, key)));
        [Cell::text(name)].into_iter().chain(cells).collect()
    };
    results.names(section).iter().map(row).collect()
}

/// The message without calls.
fn base(results: &Results) -> Option<&Measured> {
    results.harness.iter().find(|case| case.configuration == BENCH_CALLS)?.measured()
}

/// Instructions of a message and of all that it causes.
fn caused(measured: &Measured) -> Option<u64> {
    Some(measured.detail.as_ref()?.cost.inside?.instructions)
}

/// The part of those that is for pages.
fn pages(measured: &Measured) -> Option<u64> {
    let pages = measured.detail.as_ref()?.cost.inside?.pages?;
    Some(pages.heap + pages.stable)
}

/// The cycles of a message and of all that it causes.
fn cycles(measured: &Measured) -> Option<u64> {
    Some(measured.detail.as_ref()?.cost.cycles)
}

/// The part of those that is for sending messages.
fn sending(measured: &Measured) -> Option<u64> {
    Some(measured.detail.as_ref()?.cost.inside?.messaging?.cycles)
}

/// The sections whose cases are calls, with what comes before their names in the answer.
const SENT: [(&str, &str); 3] =
    [(SIZE, "argument of "), (REPLY, "reply of "), (FAN_OUT, "calls, ")];

/// Returns the cycles of each call of a case.
fn cycles_a_call(results: &Results, measured: &Measured) -> Option<u64> {
    let more = cycles(measured)?.checked_sub(cycles(base(results)?)?)?;
    Some(more / measured.operations.max(1))
}

/// Returns the first and the last case of a section.
fn ends<'r>(results: &'r Results, section: &str) -> Vec<&'r str> {
    let mut names = results.names(section);
    if names.len() > 2 {
        names.drain(1..names.len() - 1);
    }
    names
}

/// Returns the answer's table of calls: the first and the last case of each section.
fn calls_in_cycles(results: &Results, style: Style) -> Grid {
    let mut keys: Vec<&str> = Vec::new();
    for (section, _) in SENT {
        let of_section = results.configurations_of(section);
        keys.extend(of_section.into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
    }
    let mut rows = Vec::new();
    for (section, before) in SENT {
        for name in ends(results, section) {
            let cell = |key: &&str| match results.case(section, name, key) {
                Some(case) => match case.measured() {
                    Some(measured) => cycles_a_call(results, measured)
                        .map_or(Cell::Absent, |cycles| Cell::text(Short(cycles))),
                    None => Cell::missing(&case.outcome),
                },
                None => Cell::Absent,
            };
            let label = Cell::Text(format!("{before}{name}"));
            rows.push([label].into_iter().chain(keys.iter().map(cell)).collect());
        }
    }
    let header = keys.iter().map(|key| style.narrow(&heading(key)));
    Grid {
        title: "A call: cycles".to_owned(),
        header: [String::new()].into_iter().chain(header).collect(),
        rows,
        notes: Vec::new(),
        lines: false,
    }
}

/// Returns a sentence on what the last call of a section costs against the first one.
fn grown(results: &Results, (section, before): &(&str, &str)) -> Option<String> {
    let key = results.configurations_of(section).into_iter().next()?;
    let [first, last] = ends(results, section)[..] else { return None };
    let of = |name: &str| cycles_a_call(results, measured(results, section, name, key)?);
    let (few, many) = (of(first)?, of(last)?);
    Some(format!(
        "{}: {} cycles a call ({before}{last}) instead of {} ({first}), {}.",
        heading(key),
        Short(many),
        Short(few),
        Ratio(many, few)
    ))
}

/// Returns the answer's table of upgrades: the first and the last number of rows.
fn upgrades_in_cycles(results: &Results, style: Style) -> Grid {
    let cell = |measured: &Measured| {
        cycles(measured).map_or(Cell::Absent, |cycles| Cell::text(Short(cycles)))
    };
    let mut rows = rows(results, UPGRADE, cell);
    if rows.len() > 2 {
        rows.drain(1..rows.len() - 1);
    }
    Grid {
        title: "An upgrade with rows of 1 000 bytes: cycles".to_owned(),
        header: header(results, UPGRADE, style),
        rows,
        notes: Vec::new(),
        lines: false,
    }
}

/// Returns a sentence on the cheapest and the most expensive upgrade with the most rows.
fn upgraded(results: &Results) -> Option<String> {
    let name = *results.names(UPGRADE).last()?;
    let of = |case: &'_ Case| Some((cycles(case.measured()?)?, heading(&case.configuration)));
    let cases = results.section(UPGRADE).filter(|case| case.name == name);
    let mut found: Vec<(u64, String)> = cases.filter_map(of).collect();
    found.sort();
    let ((least, best), (most, worst)) = (found.first()?, found.last()?);
    (least < most).then(|| {
        format!(
            "An upgrade with {name}: {best} is the cheapest, {} cycles; {worst} takes {}.",
            Short(*least),
            Ratio(*most, *least)
        )
    })
}

/// Returns a table of the calls of a section: a value, and below it a part of that value.
fn calls(
    results: &Results,
    section: &str,
    (unit, value): (&str, fn(&Measured) -> Option<u64>),
    (below, part): (&str, fn(&Measured) -> Option<u64>),
    style: Style,
) -> Grid {
    let base = base(results);
    let a_call = |measured: &Measured, value: fn(&Measured) -> Option<u64>| {
        let more = value(measured)?.checked_sub(value(base?)?)?;
        Some(Grouped(more / measured.operations.max(1)))
    };
    let cell = |measured: &Measured| match (a_call(measured, value), a_call(measured, part)) {
        (Some(all), Some(part)) => Cell::Text(style.stacked(&all, &format!("{part} {below}"))),
        (Some(all), None) => Cell::text(all),
        (None, _) => Cell::Absent,
    };
    let title = CallsSuite.section(section).unwrap_or_default();
    Grid {
        title: format!("{title}: {unit} a call"),
        header: header(results, section, style),
        rows: rows(results, section, cell),
        notes: vec![format!(
            "The message with the calls and all that it causes, less the same message without \
             calls. Below, the part for {below}."
        )],
        lines: true,
    }
}

/// Returns a table of the kinds of messages.
fn kinds(results: &Results) -> Grid {
    let row = |case: &Case| {
        let mut cells = vec![Cell::text(&case.name)];
        let Some(measured) = case.measured() else {
            cells.extend((0..5).map(|_| Cell::missing(&case.outcome)));
            return cells;
        };
        let inside = measured.detail.as_ref().and_then(|detail| detail.cost.inside);
        let optional =
            |value: Option<u64>| value.map_or(Cell::Absent, |value| Cell::text(Grouped(value)));
        cells.extend([
            optional(inside.and_then(|inside| inside.messaging).map(|it| it.executions)),
            optional(caused(measured)),
            optional(pages(measured)),
            optional(cycles(measured)),
            optional(sending(measured)),
        ]);
        cells
    };
    let header =
        ["", "executions", "instructions", "of these, pages", "cycles", "of these, sending"];
    Grid {
        title: "Messages without arguments, and all that they cause".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: results.section(KINDS).map(row).collect(),
        notes: vec!["Queries are free.".to_owned()],
        lines: false,
    }
}

/// Returns a table of the tasks. `None` if there are none.
fn tasks(results: &Results) -> Option<Grid> {
    let case = |key: &str| measured(results, TASKS, ROUNDS, key);
    let executions =
        |measured: &Measured| Some(measured.detail.as_ref()?.cost.inside?.messaging?.executions);
    let alone = case(NO_TASK).and_then(executions);
    let row = |key: &str| -> Option<Vec<Cell>> {
        let measured = case(key)?;
        let counted = measured.detail.as_ref().map(|detail| detail.rows).filter(|it| *it > 0)?;
        let more = |value: fn(&Measured) -> Option<u64>| {
            let alone = case(NO_TASK)?;
            let more = executions(measured)?.checked_sub(executions(alone)?)?;
            value(measured)?.checked_sub(value(alone)?)?.checked_div(more)
        };
        let optional =
            |value: Option<u64>| value.map_or(Cell::Absent, |value| Cell::text(Grouped(value)));
        Some(vec![
            Cell::text(key),
            optional(
                executions(measured).zip(alone).and_then(|(all, alone)| all.checked_sub(alone)),
            ),
            Cell::text(Grouped(measured.instructions / counted)),
            optional(more(caused)),
            optional(more(pages)),
            optional(more(cycles)),
        ])
    };
    let rows: Vec<Vec<Cell>> =
        results.configurations_of(TASKS).into_iter().filter_map(row).collect();
    let header = ["", "executions", "counted", "instructions", "of these, pages", "cycles"];
    (!rows.is_empty()).then(|| Grid {
        title: "An execution of a task".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "A heartbeat runs in every round; those after the ones that are counted do nothing."
                .to_owned(),
            "Counted: instructions by the canister's own counter, which is all that it does. The \
             rest: what the same rounds cost more than with a canister without a task, for each \
             execution."
                .to_owned(),
        ],
        lines: false,
    })
}

/// Returns a table of upgrades.
fn upgrades(results: &Results, style: Style) -> Grid {
    let cell = |measured: &Measured| {
        let all = Grouped(measured.instructions);
        match cycles(measured) {
            Some(cycles) => Cell::Text(style.stacked(&all, &format!("{} cycles", Short(cycles)))),
            None => Cell::text(all),
        }
    };
    Grid {
        title: "An upgrade, by the rows of the canister: instructions".to_owned(),
        header: header(results, UPGRADE, style),
        rows: rows(results, UPGRADE, cell),
        notes: vec![
            "Rows of 1 000 bytes. pre_upgrade, the new module, and post_upgrade.".to_owned(),
        ],
        lines: true,
    }
}

/// Returns a table of the largest states that can be upgraded.
fn limit(results: &Results) -> Option<Grid> {
    let cases = results.section(LIMIT).collect::<Vec<_>>();
    let row = |case: &&Case| {
        let mut cells = vec![Cell::text(heading(&case.configuration))];
        match case.measured().and_then(|measured| Some((measured, measured.capacity.as_ref()?))) {
            Some((measured, capacity)) => cells.extend([
                Cell::text(Grouped(capacity.fits)),
                Cell::text(Grouped(measured.instructions)),
                capacity.exceeds.map_or(Cell::Absent, |rows| Cell::text(Grouped(rows))),
                Cell::text(capacity.reason.as_deref().unwrap_or("–")),
            ]),
            None => cells.extend((0..4).map(|_| Cell::missing(&case.outcome))),
        }
        cells
    };
    let header = ["", "rows that work", "instructions", "rows that fail", "reject"];
    (!cases.is_empty()).then(|| Grid {
        title: "The most rows of 1 000 bytes on the heap with which an upgrade works".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: cases.iter().map(row).collect(),
        notes: Vec::new(),
        lines: true,
    })
}
