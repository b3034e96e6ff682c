//! Findings from the users run: sentences whose numbers are computed.

use anyhow::{Context, Result};

use super::{Reference, again};
use crate::engines::{ADVISED, heading};
use crate::report::advice::overtaking::{Compared, Overtaking, overtaking};
use crate::report::advice::times;
use crate::report::number::{Grouped, Ratio};
use crate::results::{Measured, Outcome, Results};

const MAP: &str = "btree";
/// The defaults of `ic-rusqlite`.
const SQLITE: &str = "sqlite/persist";
const WAL: &str = "sqlite/wal";
const WAL_NORMAL: &str = "sqlite/wal,locking_mode=normal";
const VFS: &str = "sqlite-vfs";

/// Page caches that are smaller than the one that `ic-rusqlite` begins with.
const CACHES: [&str; 2] = ["100", "1000"];

/// Work that a small page cache may not make cheaper: its name, section and case. It is named only
/// where the figures say so.
const NOT_CHEAPER: [(&str, &str, &str); 6] = [
    ("one row read", "work", "read 1 uniform, warm"),
    ("one row updated", "work", "update 1 uniform, warm"),
    ("counting all rows", "work", "count, warm"),
    ("10 000 new rows at random", "insert", "random 10 000"),
    ("1 000 reads of the same 10 000 rows", "working-set", "10 000 rows: read 1 000"),
    ("100 reads in a table of 10 000 rows", "curve", "100 of 10 000 rows: read uniform"),
];

pub fn part(reference: &Reference) -> Result<String> {
    let users = Run { users: &reference.users };
    let earlier = Run { users: &reference.users_2025 };
    let sentences = [
        users.crossing()?,
        users.commits(&earlier)?,
        users.caches(&earlier, &CACHES)?,
        users.reading(&earlier)?,
        users.transactions(&earlier)?,
        users.write_ahead_log(&earlier)?,
        users.locking(&earlier)?,
        users.upgrades(&earlier)?,
        users.pages(&earlier)?,
        users.libraries(&earlier)?,
        users.locality()?,
        users.base()?,
    ];
    let lines: Vec<String> = sentences.iter().map(|sentence| format!("* {sentence}")).collect();
    Ok(format!("{}\n\n{}", lines.join("\n"), again(&reference.users)))
}

/// The three findings of README.md.
pub fn findings(reference: &Reference) -> Result<String> {
    let users = Run { users: &reference.users };
    let cache = users.ratio(("insert", "middle 100", SQLITE), ("insert", "middle 100", ADVISED))?;
    let together = |column| users.ratio(("insert", "middle 1", column), ("insert", MOST, column));
    let sentences = [
        format!("SQLite is cheaper than `StableBTreeMap` {}.", users.cheaper()?),
        format!(
            "Set `cache_size=1000`: the 500 000 pages of cache that `ic-rusqlite` begins with make 100 \
             rows between others {} as expensive, because SQLite goes through its cache to commit.",
            in_words(cache)
        ),
        format!(
            "Put rows into one message, which pays once for each page of memory that it touches: a row \
             alone costs {} as much as one of 10 000 in `StableBTreeMap`, and {} in SQLite.",
            in_words(together(MAP)?),
            in_words(together(ADVISED)?)
        ),
    ];
    Ok(sentences.map(|sentence| format!("* {sentence}")).join("\n"))
}

/// The most rows of a message in the middle.
const MOST: &str = "middle 10 000";

/// A ratio without its sign: `13.8 times`.
fn in_words(ratio: Ratio) -> String {
    ratio.to_string().replace('×', " times")
}

struct Run<'r> {
    users: &'r Results,
}

/// The reason why rows are cheaper together.
const TOGETHER: &str =
    "**New rows:** a message pays for each page that it touches, so rows are cheaper together.";

/// A case: section, name and column.
type Key<'k> = (&'k str, &'k str, &'k str);

impl Run<'_> {
    fn measured(&self, (section, name, column): Key<'_>) -> Result<&Measured> {
        let case = self.users.case(section, name, column).and_then(|case| case.measured());
        case.with_context(|| format!("{section}/{name}, {column} is not measured"))
    }

    /// Instructions of an operation.
    fn each(&self, key: Key<'_>) -> Result<u64> {
        Ok(self.measured(key)?.each_operation())
    }

    /// The ratio of two cases.
    fn ratio(&self, one: Key<'_>, base: Key<'_>) -> Result<Ratio> {
        let (_, ratio) = times(self.measured(one)?, self.measured(base)?)
            .with_context(|| format!("too few instructions for a ratio: {one:?} and {base:?}"))?;
        Ok(ratio)
    }

    /// The ratio of two columns.
    fn times(&self, section: &str, name: &str, column: &str, base: &str) -> Result<Ratio> {
        self.ratio((section, name, column), (section, name, base))
    }

    /// The number of rows from which on SQLite is cheaper than the map.
    fn cheaper(&self) -> Result<String> {
        let series = |place: &str, column: &str| -> Vec<(u64, u64)> {
            let of = self.users.section("insert").filter(|case| case.configuration == column);
            let of = of.filter(|case| case.name.split(' ').next() == Some(place));
            let mut series: Vec<(u64, u64)> = of
                .filter_map(|case| case.measured())
                .map(|measured| (measured.operations, measured.instructions))
                .collect();
            series.sort_unstable();
            series
        };
        let range = |place: &str, unit: &str| -> Result<String> {
            let (map, sqlite) = (series(place, MAP), series(place, ADVISED));
            let Compared { overtaking, .. } =
                overtaking(&map, &sqlite).with_context(|| format!("one size in the {place}"))?;
            Ok(match overtaking {
                Overtaking::From { about, .. } => format!("above about {}{unit}", Grouped(about)),
                Overtaking::Always => "at every size".to_owned(),
                Overtaking::Never => "at no size".to_owned(),
                Overtaking::Sometimes => {
                    let cheaper = map.iter().zip(&sqlite).filter(|(map, sqlite)| sqlite.1 < map.1);
                    let sizes: Vec<String> =
                        cheaper.map(|(map, _)| Grouped(map.0).to_string()).collect();
                    format!("at {}", sizes.join(", "))
                }
            })
        };
        let sizes: Vec<u64> = series("middle", MAP).into_iter().map(|(rows, _)| rows).collect();
        let (least, most) = sizes.first().zip(sizes.last()).context("no rows in the middle")?;
        Ok(format!(
            "{} in the middle of the table, {} at its end, and {} at random places (with \
             `cache_size=1000`; measured: {} to {} rows)",
            range("middle", " rows per message")?,
            range("end", "")?,
            range("random", "")?,
            Grouped(*least),
            Grouped(*most),
        ))
    }

    /// New rows in SQLite and in the map.
    fn crossing(&self) -> Result<String> {
        let both = |name: &str| -> Result<String> {
            let times = |column: &str| self.times("insert", name, column, MAP);
            Ok(format!("{} ({})", times(ADVISED)?, times(SQLITE)?))
        };
        Ok(format!(
            "{TOGETHER} One row a message in the middle of the table costs SQLite with `cache_size=1000` {} what it \
             costs `StableBTreeMap` (in brackets: with the 500 000 pages that `ic-rusqlite` ships), 100 \
             rows in the middle {}, at random {}. SQLite is cheaper {}; with 10 000 rows a message the map takes {} as many \
             instructions in the middle, {} at the end, {} at random.",
            both("middle 1")?,
            both("middle 100")?,
            both("random 100")?,
            self.cheaper()?,
            self.times("insert", "middle 10 000", MAP, ADVISED)?,
            self.times("insert", "end 10 000", MAP, ADVISED)?,
            self.times("insert", "random 10 000", MAP, ADVISED)?,
        ))
    }

    /// A commit that goes through the page cache.
    fn commits(&self, earlier: &Self) -> Result<String> {
        let name = "insert 100 middle, warm";
        let map = ("insert", "middle 100", MAP);
        let with = |size: &str| -> Result<String> {
            let column = format!("{SQLITE},cache_size={size}");
            let times = self.ratio(("settings", name, &column), map)?;
            Ok(format!("{times} with `cache_size={size}`"))
        };
        Ok(format!(
            "**A commit can go through the whole page cache:** 100 rows in the middle cost {} {} what they \
             cost the map, {} in 2025. That is one walk of SQLite's, which touches every page of a cache \
             of 120 MB. The same rows cost {}, and {}.",
            heading(SQLITE),
            self.times("insert", "middle 100", SQLITE, MAP)?,
            earlier.times("insert", "middle 100", SQLITE, MAP)?,
            with(CACHES[0])?,
            with(CACHES[1])?,
        ))
    }

    /// Smaller page caches: where they are cheaper, and where they are not.
    fn caches(&self, earlier: &Self, sizes: &[&str]) -> Result<String> {
        let mut parts = Vec::new();
        for size in sizes {
            let column = format!("{SQLITE},cache_size={size}");
            let times = |run: &Self, name: &str| run.times("settings", name, &column, SQLITE);
            parts.push(format!(
                "with `cache_size={size}`, reads at random cost {} ({} in 2025), updates {}, inserts {}, and \
                 inserts at the end {}",
                times(self, "read 1 000 uniform, warm")?,
                times(earlier, "read 1 000 uniform, warm")?,
                times(self, "update 1 000 uniform, warm")?,
                times(self, "insert 1 000 uniform, warm")?,
                times(self, "insert 1 000 end, warm")?,
            ));
        }
        let read = self.users.case("settings", "read 1 000 uniform, warm", SQLITE);
        let rows = read.context("the settings lack reads")?.rows;
        let mut others = Vec::new();
        for (what, section, name) in NOT_CHEAPER {
            let times = self.times(section, name, ADVISED, SQLITE)?;
            if times.0 >= times.1 {
                others.push(format!("{what} ({times})"));
            }
        }
        Ok(format!(
            "**A small page cache is cheaper than a large one for many rows a message in a large table:** \
             of 1 000 rows a message among {}, against the default of 500 000 pages, {}. With \
             `cache_size=1000` it is not cheaper for {}.",
            Grouped(rows),
            parts.join("; "),
            others.join(", ")
        ))
    }

    /// Reading by id and reading all.
    fn reading(&self, earlier: &Self) -> Result<String> {
        let (name, read) = ("read 1 000 uniform, warm", "work");
        let small = format!("{SQLITE},cache_size={}", CACHES[1]);
        Ok(format!(
            "**Reading:** rows looked up one by one at random cost SQLite {} what they cost the map ({} in \
             2025), {} with `cache_size={}`; all rows in order {} ({}).",
            self.times(read, name, SQLITE, MAP)?,
            earlier.times(read, name, SQLITE, MAP)?,
            self.ratio(("settings", name, &small), (read, name, MAP))?,
            CACHES[1],
            self.times(read, "scan, warm", SQLITE, MAP)?,
            earlier.times(read, "scan, warm", SQLITE, MAP)?,
        ))
    }

    /// Rows in transactions and messages of their own.
    fn transactions(&self, earlier: &Self) -> Result<String> {
        let times = |run: &Self, column: &str, manner: &str| -> Result<Ratio> {
            let alone = format!("10 000 rows by 1, {manner}");
            let together = "10 000 rows by 10 000, one message";
            run.ratio(("transactions", &alone, column), ("transactions", together, column))
        };
        let mut parts = Vec::new();
        for column in [ADVISED, VFS, MAP] {
            let message = "a message each";
            let mut part = format!(
                "{} {} ({} in 2025)",
                heading(column),
                times(self, column, message)?,
                times(earlier, column, message)?
            );
            if column != MAP {
                let one = times(self, column, "one message")?;
                part += &format!(", {one} in transactions of their own in one message");
            }
            parts.push(part);
        }
        Ok(format!(
            "**One message, one transaction:** 10 000 rows, each in a message of its own, cost many times \
             what they cost in one: {}.",
            parts.join("; ")
        ))
    }

    /// WAL in a canister.
    fn write_ahead_log(&self, earlier: &Self) -> Result<String> {
        let name = "insert 1 end, warm";
        let normal = self.users.case("settings", name, WAL_NORMAL);
        let refused = match normal.map(|case| &case.outcome) {
            Some(Outcome::NotApplicable { reason }) => reason,
            _ => return Err(anyhow::anyhow!("{WAL_NORMAL} is not refused")),
        };
        let because = refused.split_once("because ").map_or(refused.as_str(), |(_, why)| why);
        let pair = |section: &str, name: &str| -> Result<String> {
            let times = |run: &Self| run.times(section, name, WAL, SQLITE);
            Ok(format!("{} ({})", times(self)?, times(earlier)?))
        };
        Ok(format!(
            "**WAL in a canister** works in exclusive locking mode only: {because}. Against {} it \
             takes {} for one row at the end (in brackets: in 2025), {} for 10 000, {} for an update, and \
             {} for a read. Nothing runs concurrently with a message, so there are no readers to \
             benefit from it.",
            heading(SQLITE),
            pair("insert", "end 1")?,
            pair("insert", "end 10 000")?,
            pair("work", "update 1 000 uniform, warm")?,
            pair("work", "read 1 000 uniform, warm")?,
        ))
    }

    /// Locks that are not kept.
    fn locking(&self, earlier: &Self) -> Result<String> {
        let normal = format!("{SQLITE},locking_mode=normal");
        let times = |run: &Self| run.times("settings", "read 1 000 uniform, warm", &normal, SQLITE);
        Ok(format!(
            "**`locking_mode=normal`** drops SQLite's cache between transactions of a canister: 1 000 \
             reads then take {} ({} in 2025).",
            times(self)?,
            times(earlier)?,
        ))
    }

    /// The first read after an upgrade.
    fn upgrades(&self, earlier: &Self) -> Result<String> {
        let mut parts = Vec::new();
        for column in [ADVISED, VFS, MAP] {
            let times = |run: &Self| {
                let warm = ("work", "read 1 uniform, warm", column);
                run.ratio(("work", "read 1 uniform, upgraded", column), warm)
            };
            let (today, earlier) = (times(self)?, times(earlier)?);
            parts.push(format!("{} {today} ({earlier} in 2025)", heading(column)));
        }
        Ok(format!(
            "**After an upgrade** the first read takes, against a warm one that is alone in its message: {}.",
            parts.join("; ")
        ))
    }

    /// The cheapest and the most expensive page size.
    fn pages(&self, earlier: &Self) -> Result<String> {
        let name = "insert 1 000 uniform, warm";
        let extremes = |run: &Self| -> Result<String> {
            let mut costs: Vec<(u64, &str)> = Vec::new();
            for column in &run.users.configurations {
                let size = column
                    .key
                    .strip_prefix(SQLITE)
                    .and_then(|rest| rest.strip_prefix(",page_size="));
                if let Some(size) = size {
                    costs.push((run.each(("settings", name, &column.key))?, size));
                }
            }
            costs.sort_unstable();
            let (Some(best), Some(worst)) = (costs.first(), costs.last()) else {
                return Err(anyhow::anyhow!("no page size was varied"));
            };
            let default = run.each(("settings", name, SQLITE))?;
            Ok(format!(
                "{} with pages of {} bytes and {} with {}",
                Ratio(best.0, default),
                best.1,
                Ratio(worst.0, default),
                worst.1
            ))
        };
        Ok(format!(
            "**Page size:** 1 000 rows at random places cost {}, against {}'s default; in 2025 it was {}.",
            extremes(self)?,
            heading(SQLITE),
            extremes(earlier)?,
        ))
    }

    /// One library against the other.
    fn libraries(&self, earlier: &Self) -> Result<String> {
        let pair = |section: &str, name: &str| -> Result<String> {
            let times = |run: &Self| run.times(section, name, VFS, ADVISED);
            Ok(format!("{} ({})", times(self)?, times(earlier)?))
        };
        Ok(format!(
            "**`ic-sqlite-vfs`** against `ic-rusqlite` with `cache_size=1000`, in brackets in 2025: {} for one \
             new row in the middle, {} for 100, {} for 10 000, {} for random reads, {} for random updates.",
            pair("insert", "middle 1")?,
            pair("insert", "middle 100")?,
            pair("insert", "middle 10 000")?,
            pair("work", "read 1 000 uniform, warm")?,
            pair("work", "update 1 000 uniform, warm")?,
        ))
    }

    /// Rows that lie together and far apart.
    fn locality(&self) -> Result<String> {
        let mut parts = Vec::new();
        for column in [MAP, ADVISED, VFS] {
            let times = |verb: &str| {
                let (apart, near) = (format!("uniform: {verb} 100"), format!("middle: {verb} 100"));
                self.ratio(("locality", &apart, column), ("locality", &near, column))
            };
            parts.push(format!(
                "{} to read and {} to update in {}",
                times("read")?,
                times("update")?,
                heading(column)
            ));
        }
        let sorted = self.ratio(
            ("locality", "uniform: update 100", MAP),
            ("locality", "uniform, sorted: update 100", MAP),
        )?;
        Ok(format!(
            "**Locality:** 100 random rows cost many times what 100 neighbours cost: {}. The order in which a \
             message visits them does not matter (in the map {sorted}, against the same rows in order).",
            parts.join(", ")
        ))
    }

    /// The cost of a message before its first row, and of each further row.
    fn base(&self) -> Result<String> {
        let empty = self.users.harness.iter().find(|case| case.configuration == "bench");
        let empty = empty.and_then(|case| case.measured()?.detail.as_ref()?.cost.inside);
        let empty = empty.context("the message without work is not measured")?;
        let pages = empty.pages.context("its pages are not known")?;
        let mut parts = Vec::new();
        for column in [MAP, ADVISED] {
            let total = |rows: u64| -> Result<u64> {
                let name = format!("{rows}: insert end");
                Ok(self.measured(("base", &name, column))?.instructions)
            };
            let (one, hundred) = (total(1)?, total(100)?);
            parts.push(format!(
                "{} for the first row at the end and {} for each of 99 more in {}",
                Grouped(one),
                Grouped(hundred.saturating_sub(one) / 99),
                heading(column)
            ));
        }
        Ok(format!(
            "**The base of a message:** one that does nothing is charged {} instructions, {} of them for \
             heap pages: stack, globals, allocator. Its work comes on top: {}.",
            Grouped(empty.charge),
            Grouped(pages.heap),
            parts.join(", ")
        ))
    }
}
