//! Watch lists, whose rows have different kinds of ids: the operations of the suite keys and the model
//! that checks them.
//!
//! ```text
//!   witches (id, name)      movies (id, title, year)
//!      └──────── witch_watch ────────┘     a row for each movie on a user's list
//!
//!                       primary key       rowid    b-trees of the link table
//!   (a) id              id                yes      table, key index, user index, movie index
//!   (b) id              id                no       table, user index, movie index
//!   (c) pair            (witch, watch)    no       table, user index, movie index
//!       pair with rowid (witch, watch)    yes      table, key index, user index, movie index
//!   (d) rowid           none              yes      table, user index, movie index
//!
//!   integer   1, 2, 3, …                                              8 bytes as SQLite counts them
//!   ULID      48 bits of milliseconds │ 80 random bits                                     16 bytes
//!   UUIDv7    48 bits of milliseconds │ version │ 12 random │ variant │ 62 random          16 bytes
//!   UUIDv4    48 random │ version │ 12 random │ variant │ 62 random                        16 bytes
//! ```
//!
//! Users are called witches, as in the publication. A job is one task: creating the tables, adding
//! users, adding movies, adding links (one user's list per operation), and two queries. The rows and
//! the queries follow from the seed alone. The schema and the kind of key decide how the same rows
//! are stored.
//!
//! With integer keys, an `id` with rowid is the rowid and needs no index of its own. All five schemas
//! have the same other columns, so that they differ in their keys alone.
//!
//! The clock is seeded. It advances by a millisecond after the number of rows that the job says, and
//! by a moment more between two lists. Ids of one millisecond have no order, since ULIDs and UUIDs
//! are created independently of each other.

#[cfg(test)]
mod tests;

use crate::job::{KeyKind, Keys, KeysTask, LinkSchema};
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::random::{Rng, distinct};
use stablebench_workload::sql::{Script, StatementCall, Transaction, Value, add_row};
use stablebench_workload::{ContentDigest, Expected, Model};

/// The number of operations of a job; `queries` for a job of queries.
pub fn operations(job: &Keys, queries: u64) -> u64 {
    match job.task {
        KeysTask::Create => 1,
        KeysTask::Users | KeysTask::Links => job.users,
        KeysTask::Movies => job.movies,
        KeysTask::Wants | KeysTask::Watchers => queries,
    }
}

/// The operations starting at `from` in SQL. None for [`KeysTask::Create`], whose statements cannot
/// be prepared before the tables exist: see [`create`].
pub fn script(job: &Keys, seed: u64, from: u64, count: u64) -> Script {
    let rows = RowGenerator::new(job, seed);
    let (statement, transaction, parameters): (_, _, &dyn Fn(u64) -> Vec<Vec<Value>>) = match job
        .task
    {
        KeysTask::Create => return Script::default(),
        KeysTask::Users => (add_user(), Transaction::Message, &|user| vec![rows.user(user)]),
        KeysTask::Movies => (add_movie(), Transaction::Message, &|movie| vec![rows.movie(movie)]),
        KeysTask::Links => (add_link(job.schema), Transaction::Operations(1), &|user| {
            rows.list(user).iter().map(|link| rows.link(link)).collect()
        }),
        KeysTask::Wants => (wants(job.schema), Transaction::Message, &|query| {
            vec![vec![rows.id(Identity::User(rows.asked_user(query)))]]
        }),
        KeysTask::Watchers => (watchers(job.schema), Transaction::Message, &|query| {
            vec![vec![rows.id(Identity::Movie(rows.asked_movie(query)))]]
        }),
    };
    let calls = |number| {
        let call = |parameters| StatementCall { statement: 0, parameters };
        parameters(number).into_iter().map(call).collect()
    };
    Script {
        statements: vec![statement],
        operations: (from..from.saturating_add(count)).map(calls).collect(),
        transaction,
        writes: !matches!(job.task, KeysTask::Wants | KeysTask::Watchers),
        ..Script::default()
    }
}

/// 2023-07-15, in milliseconds since 1970.
const BEGINNING: u64 = 1_689_379_200_000;
const HOUR: u64 = 3_600_000;
/// The longest pause between two lists, in milliseconds.
const PAUSE: u64 = 4;

/// A row that has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// A movie, counted from 0.
    Movie(u64),
    /// A user, counted from 0.
    User(u64),
    /// A place on the list of a user.
    Link {
        /// The user, counted from 0.
        user: u64,
        /// The place, counted from 0.
        place: u64,
    },
}

/// A generator for one thing among many of its kind, independent of all others.
fn random(seed: u64, purpose: u64, number: u64) -> Rng {
    let stream = Rng::new(Rng::new(seed).next_u64() ^ purpose).next_u64();
    // Neighbouring states of SplitMix64 give the same numbers one draw apart; hashed states do
    // not.
    Rng::new(Rng::new(stream ^ number).next_u64())
}

impl Identity {
    /// The id in SQL.
    fn value(self, job: &Keys, seed: u64) -> Value {
        let random = || self.random(seed);
        match job.key {
            KeyKind::Integer => Value::Integer(self.number(job) as i64),
            KeyKind::Ulid => Value::Blob(ulid(self.milliseconds(job, seed), random())),
            KeyKind::UuidV4 => Value::Blob(uuid_v4(random())),
            KeyKind::UuidV7 => Value::Blob(uuid_v7(self.milliseconds(job, seed), random())),
        }
    }

    /// The time at which the row was created, in milliseconds since 1970.
    fn milliseconds(self, job: &Keys, seed: u64) -> u64 {
        let start = BEGINNING + random(seed, PURPOSE_CLOCK, 0).below(24 * HOUR);
        let a_millisecond = job.rows_a_millisecond.max(1);
        match self {
            Self::Movie(number) => start + number / a_millisecond,
            // Later than the last movie, however many there are.
            Self::User(number) => start + HOUR + (job.movies + number) / a_millisecond,
            Self::Link { user, place } => {
                let a_list = job.watches / a_millisecond + PAUSE + 1;
                let pause = random(seed, PURPOSE_CLOCK, user + 1).below(PAUSE);
                let before = (job.movies + job.users) / a_millisecond + user * a_list;
                start + 2 * HOUR + before + pause + place / a_millisecond
            }
        }
    }

    fn number(self, job: &Keys) -> u64 {
        1 + match self {
            Self::Movie(number) | Self::User(number) => number,
            Self::Link { user, place } => user * job.watches + place,
        }
    }

    fn random(self, seed: u64) -> [u8; 16] {
        let mut rng = match self {
            Self::Movie(number) => random(seed, PURPOSE_MOVIE, number),
            Self::User(number) => random(seed, PURPOSE_USER, number),
            Self::Link { user, place } => {
                let list = random(seed, PURPOSE_LINK, user).next_u64();
                random(list, PURPOSE_LINK, place)
            }
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
        bytes
    }
}

const PURPOSE_CLOCK: u64 = 1;
const PURPOSE_MOVIE: u64 = 2;
const PURPOSE_USER: u64 = 3;
const PURPOSE_LINK: u64 = 4;

fn ulid(milliseconds: u64, random: [u8; 16]) -> Vec<u8> {
    ulid::Ulid::from_parts(milliseconds, u128::from_le_bytes(random)).to_bytes().to_vec()
}

fn uuid_v4(random: [u8; 16]) -> Vec<u8> {
    uuid::Builder::from_random_bytes(random).into_uuid().into_bytes().to_vec()
}

fn uuid_v7(milliseconds: u64, random: [u8; 16]) -> Vec<u8> {
    let [bytes @ .., _, _, _, _, _, _] = random;
    uuid::Builder::from_unix_timestamp_millis(milliseconds, &bytes)
        .into_uuid()
        .into_bytes()
        .to_vec()
}

/// One movie in this number was already watched.
const WATCHED_ONE_IN: u64 = 8;
/// Movies are from these years.
const FIRST_YEAR: u64 = 1965;
const LAST_YEAR: u64 = 2023;
const DAY: u64 = 86_400;

const PURPOSE_TITLE: u64 = 11;
const PURPOSE_NAME: u64 = 12;
const PURPOSE_LIST: u64 = 13;
const PURPOSE_WANTS: u64 = 14;
const PURPOSE_WATCHERS: u64 = 15;

const SYLLABLES: [&str; 16] = [
    "ba", "cor", "del", "fen", "gar", "hol", "in", "jo", "ka", "lum", "mir", "no", "per", "sil",
    "tor", "vel",
];

/// The rows of a job.
#[derive(Clone, Copy, Debug)]
struct RowGenerator {
    job: Keys,
    seed: u64,
}

/// A movie on a user's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    user: u64,
    /// The place on the list.
    place: u64,
    movie: u64,
    /// 1 to 5.
    priority: Option<i64>,
    public: bool,
    /// Seconds since 1970, if the user has watched it.
    watched: Option<i64>,
    /// Seconds since 1970.
    created: i64,
    /// Seconds since 1970.
    updated: i64,
}

impl RowGenerator {
    /// The rows of a job with a seed.
    fn new(job: &Keys, seed: u64) -> Self {
        Self { job: *job, seed }
    }

    /// The id of a row.
    fn id(&self, row: Identity) -> Value {
        row.value(&self.job, self.seed)
    }

    /// A movie: id, title, year.
    fn movie(&self, movie: u64) -> Vec<Value> {
        let mut rng = random(self.seed, PURPOSE_TITLE, movie);
        let year = FIRST_YEAR + rng.below(LAST_YEAR - FIRST_YEAR + 1);
        vec![self.id(Identity::Movie(movie)), self.title(movie), Value::Integer(year as i64)]
    }

    /// A user: id, name.
    fn user(&self, user: u64) -> Vec<Value> {
        vec![self.id(Identity::User(user)), self.name(user)]
    }

    /// Two to four words.
    fn title(&self, movie: u64) -> Value {
        let mut rng = random(self.seed, PURPOSE_TITLE, movie);
        // The first draw is the year.
        rng.next_u64();
        let words: Vec<String> = (0..2 + rng.below(3)).map(|_| word(&mut rng)).collect();
        Value::Text(words.join(" "))
    }

    /// A word and a number, as users choose them.
    fn name(&self, user: u64) -> Value {
        let mut rng = random(self.seed, PURPOSE_NAME, user);
        Value::Text(format!("{}{}", word(&mut rng), rng.below(1_000)))
    }

    /// The list of a user, in the order in which it is added.
    fn list(&self, user: u64) -> Vec<Link> {
        let mut rng = random(self.seed, PURPOSE_LIST, user);
        let movies = distinct(&mut rng, self.job.movies, self.job.watches);
        let link = |(place, movie): (usize, u64)| {
            let place = place as u64;
            let born = Identity::Link { user, place }.milliseconds(&self.job, self.seed) / 1_000;
            let priority = rng.below(6) as i64;
            let public = rng.below(2) == 1;
            let watched = rng.below(WATCHED_ONE_IN) == 0;
            let when_watched = (born + rng.below(30 * DAY)) as i64;
            Link {
                user,
                place,
                movie,
                priority: (priority > 0).then_some(priority),
                public,
                watched: watched.then_some(when_watched),
                created: born as i64,
                updated: if watched { when_watched } else { born as i64 },
            }
        };
        movies.into_iter().enumerate().map(link).collect()
    }

    /// The columns of a link: the id if the schema has one, then user, movie and the rest.
    fn link(&self, link: &Link) -> Vec<Value> {
        let flag = |flag: bool| Value::Integer(flag.into());
        let optional = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
        let own = has_id(self.job.schema)
            .then(|| self.id(Identity::Link { user: link.user, place: link.place }));
        own.into_iter()
            .chain([
                self.id(Identity::User(link.user)),
                self.id(Identity::Movie(link.movie)),
                optional(link.priority),
                flag(link.public),
                flag(link.watched.is_some()),
                optional(link.watched),
                Value::Integer(link.created),
                Value::Integer(link.updated),
            ])
            .collect()
    }

    /// The user of a query for the movies that a user wants to watch.
    fn asked_user(&self, question: u64) -> u64 {
        random(self.seed, PURPOSE_WANTS, question).below(self.job.users)
    }

    /// The movie of a query for the users who want to watch a movie.
    fn asked_movie(&self, question: u64) -> u64 {
        random(self.seed, PURPOSE_WATCHERS, question).below(self.job.movies)
    }
}

/// Two to four syllables.
fn word(rng: &mut Rng) -> String {
    let syllable = |rng: &mut Rng| SYLLABLES[rng.below(SYLLABLES.len() as u64) as usize];
    (0..2 + rng.below(3)).map(|_| syllable(rng)).collect()
}

/// All tables.
pub const TABLES: [&str; 3] = ["witches", "movies", LINKS];
/// The link table.
pub const LINKS: &str = "witch_watch";
/// Its index on the user.
pub const USER_INDEX: &str = "witch_watch_user";
/// Its index on the movie.
pub const WATCH_INDEX: &str = "witch_watch_watch";

/// The statements that create everything.
pub fn create(job: &Keys) -> String {
    let key = match job.key {
        KeyKind::Integer => "INTEGER",
        KeyKind::Ulid | KeyKind::UuidV4 | KeyKind::UuidV7 => "BLOB",
    };
    let statements = [
        format!("CREATE TABLE witches (id {key} NOT NULL PRIMARY KEY, name TEXT NOT NULL)"),
        format!(
            "CREATE TABLE movies (id {key} NOT NULL PRIMARY KEY, title TEXT NOT NULL, \
             year INTEGER NOT NULL)"
        ),
        links(job.schema, key),
        format!("CREATE INDEX {USER_INDEX} ON {LINKS} ({})", user(job.schema)),
        format!("CREATE INDEX {WATCH_INDEX} ON {LINKS} (watch)"),
    ];
    statements.join(";\n")
}

/// The columns of the link table, in the order in which the model has them.
pub fn link_columns(schema: LinkSchema) -> String {
    let id = if has_id(schema) { "id, " } else { "" };
    format!(
        "{id}{}, watch, priority, public, watched, when_watched, created_at, last_updated",
        user(schema)
    )
}

/// The columns that order the rows of the link table.
pub fn link_order(schema: LinkSchema) -> &'static str {
    match schema {
        LinkSchema::Id | LinkSchema::IdWithoutRowid => "id",
        LinkSchema::PairWithoutRowid | LinkSchema::Pair => "witch, watch",
        LinkSchema::Rowid => "rowid",
    }
}

fn links(schema: LinkSchema, key: &str) -> String {
    let user = user(schema);
    let id = match has_id(schema) {
        true => format!("id {key} NOT NULL PRIMARY KEY, "),
        false => String::new(),
    };
    let pair = match schema {
        LinkSchema::PairWithoutRowid | LinkSchema::Pair => format!(", PRIMARY KEY ({user}, watch)"),
        LinkSchema::Id | LinkSchema::IdWithoutRowid | LinkSchema::Rowid => String::new(),
    };
    let without = match schema {
        LinkSchema::IdWithoutRowid | LinkSchema::PairWithoutRowid => " WITHOUT ROWID",
        LinkSchema::Id | LinkSchema::Pair | LinkSchema::Rowid => "",
    };
    format!(
        "CREATE TABLE {LINKS} ({id}\
         {user} {key} NOT NULL REFERENCES witches (id), watch {key} NOT NULL REFERENCES movies (id), \
         priority INTEGER, public INTEGER NOT NULL, watched INTEGER NOT NULL, \
         when_watched INTEGER, created_at INTEGER NOT NULL, last_updated INTEGER NOT NULL\
         {pair}){without}"
    )
}

/// The statement that adds a movie: id, title, year.
fn add_movie() -> String {
    "INSERT INTO movies (id, title, year) VALUES (?, ?, ?)".to_owned()
}

/// The statement that adds a user: id, name.
fn add_user() -> String {
    "INSERT INTO witches (id, name) VALUES (?, ?)".to_owned()
}

/// The statement that adds a link: the id if there is one, user, movie, and the rest.
fn add_link(schema: LinkSchema) -> String {
    let columns = link_columns(schema);
    let parameters = vec!["?"; columns.split(", ").count()].join(", ");
    format!("INSERT INTO {LINKS} ({columns}) VALUES ({parameters})")
}

/// The query for the titles that a user has not watched yet.
fn wants(schema: LinkSchema) -> String {
    format!(
        "SELECT movies.title FROM {LINKS} JOIN movies ON movies.id = {LINKS}.watch \
         WHERE {LINKS}.{} = ? AND NOT {LINKS}.watched",
        user(schema)
    )
}

/// The query for the names of users who have a movie on their lists and have not watched it yet.
fn watchers(schema: LinkSchema) -> String {
    format!(
        "SELECT witches.name FROM {LINKS} JOIN witches ON witches.id = {LINKS}.{} \
         WHERE {LINKS}.watch = ? AND NOT {LINKS}.watched",
        user(schema)
    )
}

/// Returns `true` if links have ids of their own.
fn has_id(schema: LinkSchema) -> bool {
    match schema {
        LinkSchema::Id | LinkSchema::IdWithoutRowid => true,
        LinkSchema::PairWithoutRowid | LinkSchema::Pair | LinkSchema::Rowid => false,
    }
}

/// The name of the user's column, which the last published schema renamed.
fn user(schema: LinkSchema) -> &'static str {
    match schema {
        LinkSchema::Rowid => "user",
        LinkSchema::Id
        | LinkSchema::IdWithoutRowid
        | LinkSchema::PairWithoutRowid
        | LinkSchema::Pair => "witch",
    }
}

/// The tables, in memory. Queries look at every link.
#[derive(Clone, Debug, Default)]
pub struct KeysModel {
    movies: Vec<Vec<Value>>,
    users: Vec<Vec<Value>>,
    links: Vec<(Link, Vec<Value>)>,
}

impl Model for KeysModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        Ok(self.keys(&part.job.decode()?, part))
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        let mut add =
            |place, row: &Vec<Value>| add_row(&mut digest, place, row.iter().map(Value::as_ref));
        self.users.iter().for_each(|row| add(0, row));
        self.movies.iter().for_each(|row| add(1, row));
        self.links.iter().for_each(|(_, row)| add(2, row));
        digest.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

impl KeysModel {
    fn keys(&mut self, job: &Keys, part: &JobPart) -> Expected {
        let rows = RowGenerator::new(job, part.seed);
        let numbers = part.from..part.from.saturating_add(part.count);
        match job.task {
            KeysTask::Create => Expected::default(),
            KeysTask::Users => {
                let before = self.users.len();
                self.users.extend(numbers.map(|user| rows.user(user)));
                written(&mut self.users.iter().skip(before))
            }
            KeysTask::Movies => {
                let before = self.movies.len();
                self.movies.extend(numbers.map(|movie| rows.movie(movie)));
                written(&mut self.movies.iter().skip(before))
            }
            KeysTask::Links => {
                let before = self.links.len();
                let lists = numbers.flat_map(|user| rows.list(user));
                self.links.extend(lists.map(|link| (link, rows.link(&link))));
                written(&mut self.links.iter().skip(before).map(|(_, row)| row))
            }
            KeysTask::Wants => {
                let mut found = Found::default();
                for number in numbers {
                    let before = found.rows();
                    let user = rows.asked_user(number);
                    for link in self.wanted().filter(|link| link.user == user) {
                        found.add(before, rows.title(link.movie));
                    }
                }
                found.into()
            }
            KeysTask::Watchers => {
                let mut found = Found::default();
                for number in numbers {
                    let before = found.rows();
                    let movie = rows.asked_movie(number);
                    for link in self.wanted().filter(|link| link.movie == movie) {
                        found.add(before, rows.name(link.user));
                    }
                }
                found.into()
            }
        }
    }

    /// The links to movies that were not watched yet.
    fn wanted(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().map(|(link, _)| link).filter(|link| link.watched.is_none())
    }
}

fn written(rows: &mut dyn Iterator<Item = &Vec<Value>>) -> Expected {
    let mut expected = Expected::default();
    for row in rows {
        expected.rows += 1;
        expected.bytes += row.iter().map(|value| value.as_ref().bytes()).sum::<u64>();
    }
    expected
}

/// The results of queries: rows of one column, without an order among those of a query.
#[derive(Default)]
struct Found {
    digest: ContentDigest,
    bytes: u64,
}

impl Found {
    fn rows(&self) -> u64 {
        self.digest.value().rows
    }

    /// Adds a result of a query; earlier queries have found `before` rows.
    fn add(&mut self, before: u64, value: Value) {
        self.bytes += value.as_ref().bytes();
        add_row(&mut self.digest, before, [value.as_ref()]);
    }
}

impl From<Found> for Expected {
    fn from(found: Found) -> Self {
        let results = found.digest.value();
        Self { rows: results.rows, bytes: found.bytes, results: Some(results) }
    }
}
