//! The tables of the suite calls: instructions and cycles of a call, of an execution of a task, and of
//! an upgrade.
//!
//! ```text
//!   a call       (cycles of the message with calls − cycles of the same message without) / calls
//!   a task       (200 rounds − 100 rounds) − the same without a task, / 100
//! ```

use anyhow::Result;

use super::{CallsSuite, FAN_OUT, KINDS, LIMIT, NO_TASK, REPLY, ROUNDS, SIZE, TASKS, UPGRADE};
use crate::canisters::BENCH_CALLS;
use crate::engines::heading;
use crate::report::Presentation;
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::{Grouped, Short};
use crate::results::{Case, Measured, Results};

impl Presentation for CallsSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What do calls, timers, heartbeats and upgrades cost?")
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
            let title = self.section(section).unwrap_or_default();
            grids.push(instructions(results, section, &format!("{title}: instructions"), style));
            grids.extend(cycles_of_calls(results, section, &format!("{title}: cycles"), style));
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

/// Returns a table of the instructions of a call, here and there.
fn instructions(results: &Results, section: &str, title: &str, style: Style) -> Grid {
    Grid {
        title: title.to_owned(),
        header: header(results, section, style),
        rows: rows(results, section, |measured| Cell::text(Grouped(measured.each_operation()))),
        notes: vec![
            "Per call: the canister that calls, with its callback, and the one that is called."
                .to_owned(),
        ],
        lines: false,
    }
}

/// The cycles of a message, and those of them for sending messages.
fn cycles(measured: &Measured) -> Option<(u64, Option<u64>)> {
    let cost = measured.detail.as_ref()?.cost;
    Some((cost.cycles, cost.inside.and_then(|inside| inside.messaging).map(|it| it.cycles)))
}

/// Returns a table of the cycles of a call. `None` if the base of a message is not known.
fn cycles_of_calls(results: &Results, section: &str, title: &str, style: Style) -> Option<Grid> {
    let base = results.harness.iter().find(|case| case.configuration == BENCH_CALLS.name)?;
    let (base, base_sent) = cycles(base.measured()?)?;
    let cell = |measured: &Measured| {
        let Some((all, sent)) = cycles(measured) else { return Cell::Absent };
        let each = |sum: u64| sum / measured.operations.max(1);
        let all = Grouped(each(all.saturating_sub(base)));
        match sent.zip(base_sent) {
            Some((sent, base)) => {
                let sent = Grouped(each(sent.saturating_sub(base)));
                Cell::Text(style.stacked(&all, &format!("{sent} sending")))
            }
            None => Cell::text(all),
        }
    };
    Some(Grid {
        title: title.to_owned(),
        header: header(results, section, style),
        rows: rows(results, section, cell),
        notes: vec![
            "Per call, without the message that makes them; below, the part for sending the call and \
             its response. Cycles that the call brings are not included."
                .to_owned(),
        ],
        lines: true,
    })
}

/// Returns a table of the kinds of messages.
fn kinds(results: &Results) -> Grid {
    let row = |case: &Case| {
        let mut cells = vec![Cell::text(&case.name)];
        let Some(measured) = case.measured() else {
            cells.extend((0..4).map(|_| Cell::missing(&case.outcome)));
            return cells;
        };
        let cost = measured.detail.as_ref().map(|detail| detail.cost);
        let inside = cost.and_then(|cost| cost.inside);
        let optional =
            |value: Option<u64>| value.map_or(Cell::Absent, |value| Cell::text(Grouped(value)));
        cells.extend([
            optional(inside.and_then(|inside| inside.messaging).map(|it| it.executions)),
            optional(inside.map(|inside| inside.instructions)),
            optional(cost.map(|cost| cost.cycles)),
            optional(cycles(measured).and_then(|(_, sent)| sent)),
        ]);
        cells
    };
    let header = ["", "executions", "instructions", "cycles", "of these, sending"];
    Grid {
        title: "Messages without arguments, and all that they cause".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: results.section(KINDS).map(row).collect(),
        notes: vec!["Queries are free.".to_owned()],
        lines: false,
    }
}

/// Returns a table of the tasks.
fn tasks(results: &Results) -> Option<Grid> {
    let names = results.names(TASKS);
    let [first, second] = names[..] else { return None };
    let case = |name: &str, key: &str| measured(results, TASKS, name, key);
    let more = |key: &str| {
        let [(less, _), (more, _)] = [cycles(case(first, key)?)?, cycles(case(second, key)?)?];
        more.checked_sub(less)
    };
    let alone = more(NO_TASK);
    let row = |key: &str| -> Option<Vec<Cell>> {
        let rounds = ROUNDS[1] - ROUNDS[0];
        let cycles = more(key).zip(alone).and_then(|(more, alone)| more.checked_sub(alone));
        let measured = case(second, key)?;
        let executions = measured.detail.as_ref().map(|detail| detail.rows).filter(|it| *it > 0)?;
        Some(vec![
            Cell::text(key),
            Cell::text(Grouped(measured.instructions / executions)),
            cycles.map_or(Cell::Absent, |cycles| Cell::text(Grouped(cycles / rounds))),
        ])
    };
    let keys = results.configurations_of(TASKS);
    Some(Grid {
        title: "An execution of a task".to_owned(),
        header: ["", "instructions", "cycles"].map(str::to_owned).to_vec(),
        rows: keys.into_iter().filter_map(row).collect(),
        notes: vec![
            "Instructions: the canister's own count of what it does, which is to count. Cycles: \
             the difference of 200 and 100 rounds, less that of a canister without a task."
                .to_owned(),
        ],
        lines: false,
    })
}

/// Returns a table of upgrades.
fn upgrades(results: &Results, style: Style) -> Grid {
    let cell = |measured: &Measured| {
        let cycles = cycles(measured).map_or(0, |(cycles, _)| cycles);
        let below = format!("{} cycles", Short(cycles));
        Cell::Text(style.stacked(&Grouped(measured.instructions), &below))
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
