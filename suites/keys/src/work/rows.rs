//! The rows of the suite keys: users, movies, the lists of users, and their ids.
//!
//! ```text
//!   integer   1, 2, 3, …                                              8 bytes as SQLite counts them
//!   ULID      48 bits of milliseconds │ 80 random bits                                     16 bytes
//!   UUIDv7    48 bits of milliseconds │ version │ 12 random │ variant │ 62 random          16 bytes
//!   UUIDv4    48 random │ version │ 12 random │ variant │ 62 random                        16 bytes
//! ```
//!
//! The clock is seeded. It advances by a millisecond after the number of rows that the job says, and
//! by a moment more between two lists. Ids of one millisecond have no order, since ULIDs and UUIDs
//! are created independently of each other.

use super::schema;
use crate::job::{KeyKind, Keys};
use stablebench_workload::random::{Rng, distinct};
use stablebench_workload::sql::Value;

/// 2023-07-15, in milliseconds since 1970.
pub(super) const BEGINNING: u64 = 1_689_379_200_000;
const HOUR: u64 = 3_600_000;
/// The longest pause between two lists, in milliseconds.
const PAUSE: u64 = 4;

/// A row that has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
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
pub fn random(seed: u64, purpose: u64, number: u64) -> Rng {
    let stream = Rng::new(Rng::new(seed).next_u64() ^ purpose).next_u64();
    // Neighbouring states of SplitMix64 give the same numbers one draw apart; hashed states do
    // not.
    Rng::new(Rng::new(stream ^ number).next_u64())
}

impl Identity {
    /// The id in SQL.
    pub fn value(self, job: &Keys, seed: u64) -> Value {
        let random = || self.random(seed);
        match job.key {
            KeyKind::Integer => Value::Integer(self.number(job) as i64),
            KeyKind::Ulid => Value::Blob(ulid(self.milliseconds(job, seed), random())),
            KeyKind::UuidV4 => Value::Blob(uuid_v4(random())),
            KeyKind::UuidV7 => Value::Blob(uuid_v7(self.milliseconds(job, seed), random())),
        }
    }

    /// The time at which the row was created, in milliseconds since 1970.
    pub fn milliseconds(self, job: &Keys, seed: u64) -> u64 {
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
pub struct Rows {
    job: Keys,
    seed: u64,
}

/// A movie on a user's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub user: u64,
    /// The place on the list.
    pub place: u64,
    pub movie: u64,
    /// 1 to 5.
    pub priority: Option<i64>,
    pub public: bool,
    /// Seconds since 1970, if the user has watched it.
    pub watched: Option<i64>,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970.
    pub updated: i64,
}

impl Rows {
    /// The rows of a job with a seed.
    pub fn new(job: &Keys, seed: u64) -> Self {
        Self { job: *job, seed }
    }

    /// The id of a row.
    pub fn id(&self, row: Identity) -> Value {
        row.value(&self.job, self.seed)
    }

    /// A movie: id, title, year.
    pub fn movie(&self, movie: u64) -> Vec<Value> {
        let mut rng = random(self.seed, PURPOSE_TITLE, movie);
        let year = FIRST_YEAR + rng.below(LAST_YEAR - FIRST_YEAR + 1);
        vec![self.id(Identity::Movie(movie)), self.title(movie), Value::Integer(year as i64)]
    }

    /// A user: id, name.
    pub fn user(&self, user: u64) -> Vec<Value> {
        vec![self.id(Identity::User(user)), self.name(user)]
    }

    /// Two to four words.
    pub fn title(&self, movie: u64) -> Value {
        let mut rng = random(self.seed, PURPOSE_TITLE, movie);
        // The first draw is the year.
        rng.next_u64();
        let words: Vec<String> = (0..2 + rng.below(3)).map(|_| word(&mut rng)).collect();
        Value::Text(words.join(" "))
    }

    /// A word and a number, as users choose them.
    pub fn name(&self, user: u64) -> Value {
        let mut rng = random(self.seed, PURPOSE_NAME, user);
        Value::Text(format!("{}{}", word(&mut rng), rng.below(1_000)))
    }

    /// The list of a user, in the order in which it is added.
    pub fn list(&self, user: u64) -> Vec<Link> {
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
    pub fn link(&self, link: &Link) -> Vec<Value> {
        let flag = |flag: bool| Value::Integer(flag.into());
        let optional = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
        let own = schema::has_id(self.job.schema)
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
    pub fn asked_user(&self, question: u64) -> u64 {
        random(self.seed, PURPOSE_WANTS, question).below(self.job.users)
    }

    /// The movie of a query for the users who want to watch a movie.
    pub fn asked_movie(&self, question: u64) -> u64 {
        random(self.seed, PURPOSE_WATCHERS, question).below(self.job.movies)
    }
}

/// Two to four syllables.
fn word(rng: &mut Rng) -> String {
    let syllable = |rng: &mut Rng| SYLLABLES[rng.below(SYLLABLES.len() as u64) as usize];
    (0..2 + rng.below(3)).map(|_| syllable(rng)).collect()
}
