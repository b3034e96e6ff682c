//! Findings from the users run: sentences whose numbers are computed.

use anyhow::{Context, Result};

use super::{Reference, again};
use crate::engines::{ADVISED, heading};
use crate::report::advice::{Compared, Overtaking, overtaking, times};
use crate::report::number::{Grouped, Ratio, Rows};
use crate::results::{Measured, Outcome, Results};

const MAP: &str = "btree";
/// The defaults of `ic-rusqlite`.
const SQLITE: &str = "sqlite/persist";
const WAL: &str = "sqlite/wal";
const WAL_NORMAL: &str = "sqlite/wal,locking_mode=normal";
const VFS: &str = "sqlite-vfs";

/// Page caches that are smaller than the one that `ic-rusqlite` begins with.
const CACHES: [&str; 2] = ["100", "1000"];

/// Work that a small page cache may not make cheaper: its name, section and case. It is shown only if
/// the figures confirm it.
const NOT_CHEAPER: [(&str, &str, &str); 6] = [
    ("one row read", "work", "read 1 uniform, warm"),
    ("one row updated", "work", "update 1 uniform, warm"),
    ("counting all rows", "work", "count, warm"),
    ("10 000 new rows at random", "insert", "random 10 000"),
    SMALL,
    ("100 reads in a table of 10 000 rows", "curve", "100 of 10 000 rows: read uniform"),
];
/// Of these, the one that README.md names.
const SMALL: (&str, &str, &str) =
    ("1 000 reads of the same 10 000 rows", "working-set", "10 000 rows: read 1 000");

pub fn part(reference: &Reference) -> Result<String> {
    let users = Run { users: &reference.users };
    let earlier = Run { users: &reference.users_2025 };
    let sentences = [
        users.crossing()?,
        users.commits()?,
        users.small_caches()?,
        users.large_caches()?,
        users.reading()?,
        users.transactions()?,
        users.write_ahead_log()?,
        users.locking(&earlier)?,
        users.upgrades()?,
        users.pages()?,
        users.libraries()?,
        users.locality()?,
        users.order()?,
        users.base()?,
        users.rows()?,
    ];
    let lines: Vec<String> = sentences.iter().map(|sentence| format!("* {sentence}")).collect();
    Ok(format!("{}\n\n{}", lines.join("\n"), again(&reference.users)))
}

/// The three findings of README.md.
pub fn findings(reference: &Reference) -> Result<String> {
    let users = Run { users: &reference.users };
    let cache = users.ratio(("insert", "middle 100", SQLITE), ("insert", "middle 100", ADVISED))?;
    let together = |column| users.ratio(("insert", "middle 1", column), ("insert", MOST, column));
    let of = reference.users.case("insert", "middle 100", SQLITE).context("no insertions")?;
    let small = users.ratio((SMALL.1, SMALL.2, ADVISED), (SMALL.1, SMALL.2, SQLITE))?;
    let sentences = [
        format!("SQLite is cheaper than `StableBTreeMap` {}.", users.cheaper()?),
        format!(
            "Set `cache_size=1000` for large tables: among {}, the 500 000 pages of cache that \
             `ic-rusqlite` begins with make 100 rows between others {} as expensive, because SQLite goes \
             through its cache to commit. With it, {} cost {} as much ([limits](docs/findings.md#details)).",
            Rows { rows: of.rows, payload: of.payload },
            in_words(cache),
            SMALL.0,
            in_words(small)
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
        Ok(format!(
            "**New rows are cheaper together**, because a message pays for each page that it touches: \
             SQLite is cheaper than `StableBTreeMap` {}.",
            self.cheaper()?
        ))
    }

    /// A commit that goes through the page cache.
    fn commits(&self) -> Result<String> {
        let name = "insert 100 middle, warm";
        let map = ("insert", "middle 100", MAP);
        let with = |size: &str| -> Result<String> {
            let column = format!("{SQLITE},cache_size={size}");
            let times = self.ratio(("settings", name, &column), map)?;
            Ok(format!("{times} with `cache_size={size}`"))
        };
        Ok(format!(
            "**A commit can go through the whole page cache:** 100 rows in the middle cost {} {} what they \
             cost the map, {}, and {}.",
            heading(SQLITE),
            self.times("insert", "middle 100", SQLITE, MAP)?,
            with(CACHES[1])?,
            with(CACHES[0])?,
        ))
    }

    /// Where a smaller page cache is cheaper.
    fn small_caches(&self) -> Result<String> {
        let read = "read 1 000 uniform, warm";
        let rows =
            self.users.case("settings", read, SQLITE).context("the settings lack reads")?.rows;
        let times = |name: &str| self.times("settings", name, ADVISED, SQLITE);
        Ok(format!(
            "**A small page cache is cheaper for many rows a message in a large table:** with 1 000 rows \
             a message among {}, `cache_size=1000` takes {} for reads at random, {} for updates, and {} \
             for inserts, against the default of 500 000 pages.",
            Grouped(rows),
            times(read)?,
            times("update 1 000 uniform, warm")?,
            times("insert 1 000 uniform, warm")?,
        ))
    }

    /// Where it is not.
    fn large_caches(&self) -> Result<String> {
        let mut others = Vec::new();
        for (what, section, name) in NOT_CHEAPER {
            let times = self.times(section, name, ADVISED, SQLITE)?;
            if times.0 >= times.1 {
                others.push(format!("{what} ({times})"));
            }
        }
        Ok(format!("**It is not cheaper** for {}, against the same default.", others.join(", ")))
    }

    /// Reading by id.
    fn reading(&self) -> Result<String> {
        let (section, name) = ("work", "read 1 000 uniform, warm");
        Ok(format!(
            "**Reading at random** costs SQLite with `cache_size=1000` {} what it costs the map, and {} \
             as `ic-rusqlite` ships it, for 1 000 rows a message.",
            self.times(section, name, ADVISED, MAP)?,
            self.times(section, name, SQLITE, MAP)?,
        ))
    }

    /// Rows in messages of their own.
    fn transactions(&self) -> Result<String> {
        let mut parts = Vec::new();
        for column in [ADVISED, VFS, MAP] {
            let alone = ("transactions", "10 000 rows by 1, a message each", column);
            let together = ("transactions", "10 000 rows by 10 000, one message", column);
            parts.push(format!("{} in {}", self.ratio(alone, together)?, heading(column)));
        }
        Ok(format!(
            "**One message, one transaction:** 10 000 rows, each in a message of its own, cost many times \
             what they cost in one: {}.",
            parts.join(", ")
        ))
    }

    /// WAL in a canister.
    fn write_ahead_log(&self) -> Result<String> {
        let name = "insert 1 end, warm";
        let normal = self.users.case("settings", name, WAL_NORMAL);
        let refused = match normal.map(|case| &case.outcome) {
            Some(Outcome::NotApplicable { reason }) => reason,
            _ => return Err(anyhow::anyhow!("{WAL_NORMAL} is not refused")),
        };
        let because = refused.split_once("because ").map_or(refused.as_str(), |(_, why)| why);
        let times = |section: &str, name: &str| self.times(section, name, WAL, SQLITE);
        Ok(format!(
            "**WAL in a canister** works in exclusive locking mode only: {because}. Against {} it \
             takes {} for 1 000 updates at random, {} for as many reads, and {} for one row at the end.",
            heading(SQLITE),
            times("work", "update 1 000 uniform, warm")?,
            times("work", "read 1 000 uniform, warm")?,
            times("insert", "end 1")?,
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
    fn upgrades(&self) -> Result<String> {
        let mut parts = Vec::new();
        for column in [ADVISED, VFS, MAP] {
            let warm = ("work", "read 1 uniform, warm", column);
            let times = self.ratio(("work", "read 1 uniform, upgraded", column), warm)?;
            parts.push(format!("{times} in {}", heading(column)));
        }
        Ok(format!(
            "**After an upgrade** the first read costs these multiples of a warm one that is alone in its message: {}.",
            parts.join(", ")
        ))
    }

    /// The cheapest and the most expensive page size.
    fn pages(&self) -> Result<String> {
        let name = "insert 1 000 uniform, warm";
        let mut costs: Vec<(u64, &str)> = Vec::new();
        for column in &self.users.configurations {
            let size =
                column.key.strip_prefix(SQLITE).and_then(|rest| rest.strip_prefix(",page_size="));
            if let Some(size) = size {
                costs.push((self.each(("settings", name, &column.key))?, size));
            }
        }
        costs.sort_unstable();
        let (Some(best), Some(worst)) = (costs.first(), costs.last()) else {
            return Err(anyhow::anyhow!("no page size was varied"));
        };
        let default = self.each(("settings", name, SQLITE))?;
        Ok(format!(
            "**Page size:** 1 000 rows at random places cost {} with pages of {} bytes and {} with {}, \
             against {}'s default.",
            Ratio(best.0, default),
            best.1,
            Ratio(worst.0, default),
            worst.1,
            heading(SQLITE),
        ))
    }

    /// One library against the other.
    fn libraries(&self) -> Result<String> {
        let times = |section: &str, name: &str| self.times(section, name, VFS, ADVISED);
        Ok(format!(
            "**`ic-sqlite-vfs`** takes, against `ic-rusqlite` with `cache_size=1000`, {} for one new row in \
             the middle, {} for 100, {} for 1 000 reads at random, and {} for as many updates.",
            times("insert", "middle 1")?,
            times("insert", "middle 100")?,
            times("work", "read 1 000 uniform, warm")?,
            times("work", "update 1 000 uniform, warm")?,
        ))
    }

    /// Rows that lie together and far apart.
    fn locality(&self) -> Result<String> {
        let mut parts = Vec::new();
        for column in [MAP, ADVISED, VFS] {
            let near = ("locality", "middle: update 100", column);
            let times = self.ratio(("locality", "uniform: update 100", column), near)?;
            parts.push(format!("{times} in {}", heading(column)));
        }
        Ok(format!(
            "**Locality:** to update 100 random rows costs many times what 100 neighbours cost: {}.",
            parts.join(", ")
        ))
    }

    /// The order of rows in a message.
    fn order(&self) -> Result<String> {
        let sorted = ("locality", "uniform, sorted: update 100", MAP);
        Ok(format!(
            "**The order of rows in a message does not matter:** 100 random updates in the map cost {} what \
             the same cost in order.",
            self.ratio(("locality", "uniform: update 100", MAP), sorted)?
        ))
    }

    /// The cost of a message that does nothing.
    fn base(&self) -> Result<String> {
        let empty = self.users.harness.iter().find(|case| case.configuration == "bench");
        let empty = empty.and_then(|case| case.measured()?.detail.as_ref()?.cost.inside);
        let empty = empty.context("the message without work is not measured")?;
        let pages = empty.pages.context("its pages are not known")?;
        Ok(format!(
            "**The base of a message:** one that does nothing is charged {} instructions, {} of them for \
             heap pages: stack, globals, allocator.",
            Grouped(empty.charge),
            Grouped(pages.heap),
        ))
    }

    /// The cost of a message's first row, and of each further row.
    fn rows(&self) -> Result<String> {
        let mut parts = Vec::new();
        for column in [MAP, ADVISED] {
            let total = |rows: u64| -> Result<u64> {
                let name = format!("{rows}: insert end");
                Ok(self.measured(("base", &name, column))?.instructions)
            };
            let (one, hundred) = (total(1)?, total(100)?);
            parts.push(format!(
                "{} and {} in {}",
                Grouped(one),
                Grouped(hundred.saturating_sub(one) / 99),
                heading(column)
            ));
        }
        Ok(format!(
            "**The first row of a message is the expensive one:** at the end of the table, the first and \
             each of 99 more take {} instructions.",
            parts.join(", ")
        ))
    }
}
