//! The own tables of the suite users: the answer, which is what a new row costs, prices, and the
//! published figures next to ours.

use anyhow::Result;

use crate::plan::{SPANS, UsersSuite, published, rows_of_span, source};
use crate::sections::describe;
use stablebench_suite::engines::{ADVISED, SHIPPED, heading, is_floor};
use stablebench_suite::report::advice::times;
use stablebench_suite::report::answer::{
    WIDTH, Winner, cache_sizes, is_without_journal, shares, winner,
};
use stablebench_suite::report::grid::{BEST, Cell, Columns, Grid, Style, cheapest};
use stablebench_suite::report::number::{Grouped, Ratio, Short};
use stablebench_suite::report::{BASE, Figure, Presentation, PublishedFigures, price};
use stablebench_suite::results::{Case, FixtureInfo, Measured, Results};

const SECTION: &str = "insert";
/// The mark of a cost that the default size of SQLite's page cache causes.
const CAUSED: &str = "!";
const WASM_PAGE: u64 = 1 << 16;
/// The bytes of a page cache that is not small.
const LARGE: u64 = 64 << 20;
/// The width of a size's column and of a price's, with the space around it.
const SIZE: usize = 9;
const PRICE: usize = 11;
/// The rows of the table.
const ROWS: usize = 16;

impl Presentation for UsersSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What does it cost to add, read, change and remove rows among many?")
    }

    fn headlines(&self) -> &'static [&'static str] {
        &["Compared with the published figures"]
    }

    fn section(&self, name: &str) -> Option<String> {
        describe(name).map(str::to_owned)
    }

    fn after_section(&self, results: &Results, name: &str, style: Style) -> Result<Vec<Grid>> {
        let mut grids = Vec::new();
        if name == SECTION {
            if results.published.is_some() {
                grids.push(published_and_ours(results, style)?);
            }
            grids.extend(price::grid(results, style));
        }
        if [SECTION, "base", "locality", "working-set"].contains(&name) {
            let title = describe(name).unwrap_or(name);
            grids.extend(price::parts(results, name, title, style));
        }
        Ok(grids)
    }

    fn answer_tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        // The published table is the answer to what it was repeated for.
        let own = new_rows(results, style).filter(|_| results.published.is_none());
        Ok(own.into_iter().collect())
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        to_do(results)
    }

    fn published(&self, results: &Results) -> Result<Option<PublishedFigures>> {
        if results.published.is_none() {
            return Ok(None);
        }
        let theirs = published()?;
        let figures = theirs.cases.iter().filter_map(|case| {
            let measured = case.measured()?;
            Some(Figure {
                section: case.section.clone(),
                name: case.name.clone(),
                configuration: case.configuration.clone(),
                instructions: measured.instructions,
                operations: measured.operations,
            })
        });
        let (source, figures) = (source(&theirs), figures.collect());
        Ok(Some(PublishedFigures { source, figures, ratios: Vec::new() }))
    }

    fn note(&self, results: &Results) -> Option<String> {
        let mut sentences = Vec::new();
        // Only the section insert has ratios.
        if results.section(SECTION).any(|case| case.configuration == BASE) {
            sentences.push(format!("× is against {}.", heading(BASE)));
        }
        let has = |key: &str| results.configurations.iter().any(|one| one.key == key);
        if has(ADVISED) && has(SHIPPED) {
            sentences.push(format!(
                "{} is SQLite as we advise to set it; without a cache_size, it has the 500 000 pages \
                 that ic-rusqlite begins with.",
                heading(ADVISED)
            ));
        }
        if results.configurations.iter().any(|one| is_floor(&one.key)) {
            sentences.push("The floors store the same bytes on bare stable memory.".to_owned());
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// Returns the post's table, with our figures below the published ones.
fn published_and_ours(results: &Results, style: Style) -> Result<Grid> {
    let theirs = published()?;
    let mut header = vec!["\"new elements\"".to_owned(), "new rows".to_owned()];
    let keys: Vec<&str> =
        theirs.configurations.iter().map(|configuration| configuration.key.as_str()).collect();
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    let mut rows = Vec::new();
    for span in SPANS {
        let new_rows = rows_of_span(span);
        let name = format!("middle {}", Grouped(new_rows));
        let line = |results: &Results, labels: [Cell; 2]| {
            let cell = |key: &&str| {
                let case = results.case(SECTION, &name, key).and_then(|case| case.measured());
                case.map_or(Cell::Absent, |case| Cell::text(Grouped(case.instructions)))
            };
            labels.into_iter().chain(keys.iter().map(cell)).collect::<Vec<Cell>>()
        };
        rows.push(line(&theirs, [Cell::text(Grouped(span)), Cell::text(Grouped(new_rows))]));
        rows.push(line(results, [Cell::text("– here"), Cell::text("")]));
    }
    Ok(Grid {
        title: "Compared with the published figures".to_owned(),
        header,
        rows,
        notes: vec![format!(
            "Published: {}. Its \"new elements\" are the span of the new ids, which is ten times \
             their number.",
            source(&theirs)
        )],
        lines: true,
    })
}

/// Returns the table of what a new row costs, by the rows of a message; `None` without new rows.
///
/// ```text
///                                       1      100   10 000    $ of 1
///   middle
///     StableBTreeMap               *769k   69.0k   56.7k    $10.97
///     SQLite PERSIST               4.37M  !1.52M   36.2k    $15.75
///   end
///     …
/// ```
fn new_rows(results: &Results, style: Style) -> Option<Grid> {
    let measured_sizes = sizes(results);
    let columns = Columns::of_section(results, SECTION, configurations(results), style);
    let room = room(&columns, style);
    let sizes = shown(measured_sizes.clone(), room);
    let priced = priced(&sizes, room);
    let keys = fitting(columns.shown.clone(), places(results).len());
    let mut header = vec![String::new()];
    header.extend(sizes.iter().map(|size| Grouped(*size).to_string()));
    header.extend(priced.iter().map(|size| format!("$ of {}", Grouped(*size))));
    let (mut rows, mut caused) = (Vec::new(), false);
    for place in places(results) {
        rows.push(vec![Cell::text(place)]);
        let measured = |key: &str, size: u64| {
            let name = format!("{place} {}", Grouped(size));
            results.case(SECTION, &name, key)
        };
        let cost = |key: &str, size| Some(measured(key, size)?.measured()?.each_operation());
        // A row stands for equal modes, and shows the best of them.
        let best = |key, size| columns.best(key, |key| cost(key, size).unwrap_or(u64::MAX));
        let least = |size: u64| {
            cheapest(columns.shown.iter().filter_map(|key| cost(best(key, size), size)))
        };
        for key in &keys {
            let cell = |size: &u64| {
                let of = best(key, *size);
                let Some(case) = measured(of, *size) else { return Cell::Absent };
                let Some(value) = cost(of, *size) else { return Cell::missing(&case.outcome) };
                let mark = match Some(value) == least(*size) {
                    true => BEST,
                    false if reads_cache(results, case) => CAUSED,
                    false => "",
                };
                Cell::Text(format!("{mark}{:#}", Short(value)))
            };
            let dollars =
                |size: &u64| match measured(best(key, *size), *size).and_then(Case::measured) {
                    Some(of) => price_of(of, results),
                    None => Cell::Absent,
                };
            let label = Cell::Text(format!("  {}", columns.heading(key)));
            let cells: Vec<Cell> = sizes.iter().map(cell).collect();
            caused |= cells
                .iter()
                .any(|cell| matches!(cell, Cell::Text(text) if text.starts_with(CAUSED)));
            let row = [label].into_iter().chain(cells);
            rows.push(row.chain(priced.iter().map(dollars)).collect());
        }
    }
    let mut note = format!("{BEST} cheapest");
    if caused {
        note += &format!("; {CAUSED} goes through SQLite's whole cache at commit: set cache_size");
    }
    if let Some(equal) = columns.equal() {
        note += &format!("; {equal} to 10 %, the best is shown");
    }
    let without = columns.shown.iter().any(|key| is_without_journal(key));
    if without {
        note += "; OFF cannot undo a transaction";
    }
    let all = measured_sizes.iter().filter(|size| !sizes.contains(size));
    let narrow: Vec<String> = all.map(|size| Grouped(*size).to_string()).collect();
    if !narrow.is_empty() {
        note += &format!("; not shown on this terminal: {} rows", narrow.join(", "));
    }
    let hidden = columns.shown.iter().filter(|key| !keys.contains(key));
    let hidden = hidden.map(|key| columns.heading(key));
    let hidden: Vec<String> = hidden.collect();
    if !hidden.is_empty() {
        note += &format!("; all tables also have {}", hidden.join(", "));
    }
    let dollars = if priced.is_empty() { "" } else { "; $ for a million messages" };
    (!rows.is_empty()).then(|| Grid {
        title: format!("Instructions of a new row, by the new rows of a message{dollars}"),
        header,
        rows,
        notes: vec![note + "."],
        lines: false,
    })
}

/// Returns sentences on what to do; `None` without new rows.
fn to_do(results: &Results) -> Option<Vec<String>> {
    let sizes = sizes(results);
    let (least, most) = (sizes.first()?, sizes.last()?);
    let mut sentences: Vec<String> = Vec::new();
    for place in places(results) {
        let winners = sizes.iter().filter_map(|size| {
            Some((*size, winner(results, SECTION, &format!("{place} {}", Grouped(*size)))?))
        });
        let winners: Vec<(u64, Winner<'_>)> = winners.collect();
        let spans = winners.chunk_by(|one, other| one.1.key == other.1.key);
        let span = |span: &[(u64, Winner<'_>)]| match span {
            [(size, winner)] => Some(format!("{} for {}", heading(winner.key), Grouped(*size))),
            [(from, winner), .., (to, _)] => {
                let name = heading(winner.key);
                Some(format!("{name} for {} to {}", Grouped(*from), Grouped(*to)))
            }
            [] => None,
        };
        let spans: Vec<String> = spans.filter_map(span).collect();
        if winners.iter().any(|(_, winner)| winner.next.is_some()) {
            let place = match place {
                "random" => "At random".to_owned(),
                "end" => "At the end".to_owned(),
                other => format!("In the {other}"),
            };
            sentences.push(format!("{place}: {} rows a message.", spans.join(", ")));
        }
    }
    sentences.extend(cache_sizes(results));
    sentences.extend(together(results, *least, *most));
    sentences.extend(shares(results));
    Some(sentences)
}

/// Returns a sentence on many rows in one message instead of one.
fn together(results: &Results, least: u64, most: u64) -> Option<String> {
    let place = *places(results).first()?;
    let of = |size: u64| winner(results, SECTION, &format!("{place} {}", Grouped(size)));
    let (few, many) = (of(least)?, of(most)?);
    let (ratio, _) = times(many.measured, few.measured)?;
    (least == 1 && ratio < 0.5).then(|| {
        format!(
            "Put rows into one message: of {}, each costs {} of one alone ({place}, cheapest engine).",
            Grouped(most),
            Ratio(many.measured.each_operation(), few.measured.each_operation()),
        )
    })
}

/// `true` if a message touches most of the heap that SQLite's page cache has.
fn reads_cache(results: &Results, case: &Case) -> bool {
    let of = |fixture: &&FixtureInfo| {
        (&fixture.configuration, fixture.rows, fixture.payload)
            == (&case.configuration, case.rows, case.payload)
    };
    let fixture = results.fixtures.iter().find(of).and_then(|fixture| fixture.outcome.measured());
    let cache = fixture.and_then(|fixture| fixture.cache_bytes).unwrap_or(0);
    let detail = case.measured().and_then(|measured| measured.detail.as_ref());
    let touched = detail.and_then(|detail| detail.pages?.touched);
    let touched = touched.map_or(0, |pages| pages.heap * WASM_PAGE);
    cache > LARGE && touched > cache / 2
}

fn price_of(of: &Measured, results: &Results) -> Cell {
    let Some(detail) = &of.detail else { return Cell::Absent };
    let dollars =
        price::usd(price::cycles(detail.cost.cycles, &results.prices), 1e6, &results.prices);
    Cell::Text(format!("${dollars:.2}"))
}

/// Returns the places of new rows, in their order.
fn places(results: &Results) -> Vec<&str> {
    let mut places: Vec<&str> = Vec::new();
    for name in results.names(SECTION) {
        let place = name.split(' ').next().unwrap_or(name);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns the configurations but floors, which nobody takes.
fn configurations(results: &Results) -> Vec<&str> {
    let keys = results.configurations_of(SECTION);
    let rated: Vec<&str> = keys.iter().copied().filter(|key| !is_floor(key)).collect();
    if rated.is_empty() { keys } else { rated }
}

/// Returns the rows per message, ascending.
fn sizes(results: &Results) -> Vec<u64> {
    let measured = results.section(SECTION).filter_map(Case::measured);
    let mut sizes: Vec<u64> = measured.map(|measured| measured.operations).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the width that labels leave.
fn room(columns: &Columns<'_>, style: Style) -> usize {
    let labels = columns.shown.iter().map(|key| columns.heading(key).chars().count());
    let label = labels.max().unwrap_or(0) + 5;
    usize::from(style.terminal.width.unwrap_or(WIDTH)).saturating_sub(label)
}

/// Returns the sizes that fit: the first, the last, and then those between them.
fn shown(mut sizes: Vec<u64>, room: usize) -> Vec<u64> {
    let most = (room / SIZE).max(1);
    while sizes.len() > most {
        sizes.remove(sizes.len() / 2);
    }
    sizes
}

/// Returns the sizes with a price, as far as there is room: 100 or the last one, and the first.
fn priced(sizes: &[u64], room: usize) -> Vec<u64> {
    let hundred = sizes.iter().find(|size| **size == 100).or(sizes.last());
    let mut priced: Vec<u64> = [hundred, sizes.first()].into_iter().flatten().copied().collect();
    priced.dedup();
    priced.truncate(room.saturating_sub(sizes.len() * SIZE) / PRICE);
    priced.sort_unstable();
    priced
}

/// Returns the configurations that fit: of each place the map, SQLite as advised and as shipped, and
/// then the others in their order.
fn fitting(mut keys: Vec<&str>, places: usize) -> Vec<&str> {
    let most = (ROWS / places.max(1)).saturating_sub(1).max(1);
    let first = [BASE, ADVISED, SHIPPED, "sqlite-vfs"];
    while keys.len() > most {
        let last = keys.iter().rposition(|key| !first.contains(key));
        keys.remove(last.unwrap_or(keys.len() - 1));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::results::sample::{case, of};

    #[test]
    fn notes_are_on_configurations_that_were_run() {
        let note = |section: &str, keys: &[&str]| {
            let cases = keys.iter().map(|key| case(section, "middle 1", key, 100_000));
            UsersSuite.note(&of(cases.collect()))
        };
        let (ratios, floors) = (
            "× is against StableBTreeMap.",
            "The floors store the same bytes on bare stable memory.",
        );
        let both = format!("{ratios} {floors}");
        assert_eq!(note("insert", &["sqlite/wal"]), None);
        assert_eq!(note("insert", &["btree", "sqlite/wal"]).as_deref(), Some(ratios));
        assert_eq!(note("insert", &["sqlite/wal", "array"]).as_deref(), Some(floors));
        assert_eq!(note("insert", &["btree", "array"]), Some(both));
        assert_eq!(note("work", &["btree", "sqlite/wal"]), None);
        assert_eq!(note("work", &["btree", ADVISED]), None);
        let advised = note("work", &[ADVISED, SHIPPED]).unwrap();
        assert!(advised.starts_with("SQLite PERSIST cache_size=1000 is SQLite as we advise"));
    }

    /// The best of equal modes is marked, although the row has the name of another one.
    #[test]
    fn the_cheapest_of_equal_modes_is_marked() {
        let costs = [("btree", 300_000), ("sqlite/persist", 105_000), ("sqlite/delete", 100_000)];
        let cases = costs.map(|(key, cost)| case(SECTION, "middle 1", key, cost));
        let grid = new_rows(&of(cases.to_vec()), Style::default()).unwrap();
        let rows = grid.texts();
        assert_eq!(rows.len(), 3, "{rows:?}");
        let marked = |row: &&Vec<String>| row.iter().any(|cell| cell.starts_with(BEST));
        let marked: Vec<&str> = rows.iter().filter(marked).map(|row| row[0].trim()).collect();
        assert_eq!(marked, ["SQLite PERSIST = DELETE"]);
    }
}
