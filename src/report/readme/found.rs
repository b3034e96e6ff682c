//! What follows from the users run, in sentences whose numbers are computed.

use anyhow::{Context, Result};

use super::{Reference, again};
use crate::replica::Inside;
use crate::report::advice::overtaking::{Overtaking, overtaking};
use crate::report::heading;
use crate::report::number::{Grouped, Ratio};
use crate::results::{Measured, Outcome, Results};

const MAP: &str = "btree";
/// What `ic-rusqlite` opens its connection with.
const SQLITE: &str = "sqlite/persist";
const WAL: &str = "sqlite/wal";
const WAL_NORMAL: &str = "sqlite/wal,locking_mode=normal";
const VFS: &str = "sqlite-vfs";

pub fn part(reference: &Reference) -> Result<String> {
    let users = Run(&reference.users);
    let sentences = [
        users.crossing()?,
        users.reading()?,
        users.write_ahead_log()?,
        users.transactions()?,
        users.locking()?,
        users.upgrades()?,
        users.pages()?,
        users.libraries()?,
        users.charged()?,
    ];
    let lines: Vec<String> = sentences.iter().map(|sentence| format!("* {sentence}")).collect();
    Ok(format!("{}\n\n{}", lines.join("\n"), again(&reference.users)))
}

struct Run<'r>(&'r Results);

impl Run<'_> {
    /// Instructions of an operation.
    fn each(&self, section: &str, name: &str, column: &str) -> Result<u64> {
        let case = self.0.case(section, name, column).and_then(|case| case.measured());
        let case = case.with_context(|| format!("{section}/{name}, {column} is not measured"))?;
        Ok(Measured::each_operation(case))
    }

    /// How many times one column's is the other's.
    fn times(&self, section: &str, name: &str, column: &str, base: &str) -> Result<Ratio> {
        Ok(Ratio(self.each(section, name, column)?, self.each(section, name, base)?))
    }

    /// Where SQLite becomes cheaper than the map.
    fn crossing(&self) -> Result<String> {
        let series = |place: &str, column: &str| -> Vec<(u64, u64)> {
            let of = self.0.section("insert").filter(|case| case.column == column);
            let of = of.filter(|case| case.name.split(' ').next() == Some(place));
            let mut series: Vec<(u64, u64)> = of
                .filter_map(|case| case.measured())
                .map(|measured| (measured.operations, measured.instructions))
                .collect();
            series.sort_unstable();
            series
        };
        let told = |place: &str| match overtaking(&series(place, MAP), &series(place, SQLITE)) {
            Some(Overtaking::From { dearer_at, about, .. }) => {
                format!("from about {} rows a message on (dearer at {dearer_at})", Grouped(about))
            }
            Some(Overtaking::Always) => "throughout".to_owned(),
            Some(Overtaking::Never) => "nowhere".to_owned(),
            Some(Overtaking::Sometimes) | None => {
                let (map, sqlite) = (series(place, MAP), series(place, SQLITE));
                let cheaper = map.iter().zip(&sqlite).filter(|(map, sqlite)| sqlite.1 < map.1);
                let sizes: Vec<String> =
                    cheaper.map(|(map, _)| Grouped(map.0).to_string()).collect();
                format!("with {} rows a message", sizes.join(", "))
            }
        };
        Ok(format!(
            "**New rows:** a single row is cheapest in `StableBTreeMap`, many rows in SQLite, whose \
             transaction costs much and whose rows cost little. It is cheaper {} in the middle of \
             the table, and {} at its end; with 10 000 rows the map takes {} as many instructions \
             in the middle, {} at the end.",
            told("middle"),
            told("end"),
            self.times("insert", "middle 10 000", MAP, SQLITE)?,
            self.times("insert", "end 10 000", MAP, SQLITE)?,
        ))
    }

    /// Reading by id and reading all.
    fn reading(&self) -> Result<String> {
        Ok(format!(
            "**Reading:** rows looked up one by one cost SQLite {} what they cost the map, all rows in \
             order {}.",
            self.times("work", "read 1 000 uniform, warm", SQLITE, MAP)?,
            self.times("work", "scan, warm", SQLITE, MAP)?,
        ))
    }

    /// What WAL does in a canister.
    fn write_ahead_log(&self) -> Result<String> {
        let name = "insert 1 end, warm";
        let normal = self.0.case("settings", name, WAL_NORMAL);
        let refused = match normal.map(|case| &case.outcome) {
            Some(Outcome::NotApplicable { reason }) => reason,
            _ => return Err(anyhow::anyhow!("{WAL_NORMAL} is not refused")),
        };
        let because = refused.split_once("because ").map_or(refused.as_str(), |(_, why)| why);
        Ok(format!(
            "**WAL in a canister** works in exclusive locking mode only: {because}. Against {} it \
             takes {} for one row at the end, {} for 10 000, {} for an update, and {} for a \
             read. Nothing runs beside a message, so there are no readers that it would let go on.",
            heading(SQLITE),
            self.times("insert", "end 1", WAL, SQLITE)?,
            self.times("insert", "end 10 000", WAL, SQLITE)?,
            self.times("work", "update 1 000 uniform, warm", WAL, SQLITE)?,
            self.times("work", "read 1 000 uniform, warm", WAL, SQLITE)?,
        ))
    }

    /// Rows in transactions of their own.
    fn transactions(&self) -> Result<String> {
        let times = |column: &str| -> Result<Ratio> {
            let by =
                |rows: &str| self.each("transactions", &format!("{rows}, one message"), column);
            Ok(Ratio(by("10 000 rows by 1")?, by("10 000 rows by 10 000")?))
        };
        Ok(format!(
            "**Transactions:** 10 000 rows, each in a transaction of its own, cost {} {} what they \
             cost in one; {} {}.",
            heading(SQLITE),
            times(SQLITE)?,
            heading(VFS),
            times(VFS)?,
        ))
    }

    /// Locks that are not kept.
    fn locking(&self) -> Result<String> {
        let normal = format!("{SQLITE},locking_mode=normal");
        let name = "read 1 000 uniform, warm";
        Ok(format!(
            "**`locking_mode=normal`** drops SQLite's cache between transactions of a canister: 1 000 \
             reads then take {}.",
            self.times("settings", name, &normal, SQLITE)?,
        ))
    }

    /// The first read after an upgrade.
    fn upgrades(&self) -> Result<String> {
        let times = |column: &str| -> Result<Ratio> {
            let read = |state: &str| self.each("work", &format!("read 1 uniform, {state}"), column);
            Ok(Ratio(read("upgraded")?, read("warm")?))
        };
        Ok(format!(
            "**After an upgrade** the first read takes {} what a warm one takes in {}, {} in {}, {} in the map.",
            times(SQLITE)?,
            heading(SQLITE),
            times(VFS)?,
            heading(VFS),
            times(MAP)?,
        ))
    }

    /// The cheapest and the dearest page size.
    fn pages(&self) -> Result<String> {
        let name = "insert 1 000 uniform, warm";
        let mut costs: Vec<(u64, &str)> = Vec::new();
        for column in &self.0.columns {
            let size =
                column.key.strip_prefix(SQLITE).and_then(|rest| rest.strip_prefix(",page_size="));
            if let Some(size) = size {
                costs.push((self.each("settings", name, &column.key)?, size));
            }
        }
        costs.sort_unstable();
        let (Some(best), Some(worst)) = (costs.first(), costs.last()) else {
            return Err(anyhow::anyhow!("no page size was varied"));
        };
        let default = self.each("settings", name, SQLITE)?;
        Ok(format!(
            "**Page size:** 1 000 rows at random places cost {} with pages of {} bytes and {} with \
             {} what they cost with {}'s default.",
            Ratio(best.0, default),
            best.1,
            Ratio(worst.0, default),
            worst.1,
            heading(SQLITE),
        ))
    }

    /// One library beside the other.
    fn libraries(&self) -> Result<String> {
        Ok(format!(
            "**`ic-sqlite-vfs`** against `ic-rusqlite`: {} for one new row in the middle, {} for 10 000, \
             {} for a read.",
            self.times("insert", "middle 1", VFS, SQLITE)?,
            self.times("insert", "middle 10 000", VFS, SQLITE)?,
            self.times("work", "read 1 000 uniform, warm", VFS, SQLITE)?,
        ))
    }

    /// What memory pages cost, by the rules of the run.
    fn charged(&self) -> Result<String> {
        if self.0.replica.rules == "2025-10" { self.unseen() } else { self.for_pages() }
    }

    /// What a new row in the middle costs.
    fn one_row(&self, column: &str) -> Result<Inside> {
        let case = self.0.case("insert", "middle 1", column).and_then(|case| case.measured());
        let inside = case.and_then(|case| case.detail.as_ref()?.cost.inside);
        inside.with_context(|| format!("{column} tells no charge"))
    }

    /// How much of a charge is for pages that are touched.
    fn for_pages(&self) -> Result<String> {
        let pages = |column: &str| -> Result<String> {
            let inside = self.one_row(column)?;
            let pages = inside.pages.with_context(|| format!("{column} tells no pages"))?;
            let costs = Grouped(pages.heap + pages.stable);
            Ok(format!("{costs} of {} in {}", Grouped(inside.charge), heading(column)))
        };
        Ok(format!(
            "**Pages are much of the bill:** under the rules {} each Wasm page that a message touches costs \
             80 000 instructions, and its first write as many. For one row in the middle that is {}, \
             {}, and {}.",
            self.0.replica.rules,
            pages(SQLITE)?,
            pages(VFS)?,
            pages(MAP)?,
        ))
    }

    /// What the counter does not see.
    fn unseen(&self) -> Result<String> {
        let charge = |column: &str| -> Result<Ratio> {
            let inside = self.one_row(column)?;
            Ok(Ratio(inside.charge, inside.instructions))
        };
        Ok(format!(
            "**The counter is not the bill:** heap pages that changed cost 1 000 instructions each at a \
             message's end. For one row in the middle the whole charge is {} what the counter reads \
             in {}, {} in {}, {} in the map.",
            charge(SQLITE)?,
            heading(SQLITE),
            charge(VFS)?,
            heading(VFS),
            charge(MAP)?,
        ))
    }
}
