//! The rows: movies, users, and the lists of users.

use stablebench_protocol::Keys;

use super::id::{Identity, random};
use super::schema;
use crate::sql::Value;
use crate::{Rng, access};

/// One movie in so many was watched already.
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
    /// Seconds since 1970, where the user has watched it.
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
        // The first is the year's.
        rng.next_u64();
        let words: Vec<String> = (0..2 + rng.below(3)).map(|_| word(&mut rng)).collect();
        Value::Text(words.join(" "))
    }

    /// A word and a number, as users choose them.
    pub fn name(&self, user: u64) -> Value {
        let mut rng = random(self.seed, PURPOSE_NAME, user);
        Value::Text(format!("{}{}", word(&mut rng), rng.below(1_000)))
    }

    /// The list of a user, in the order it is added.
    pub fn list(&self, user: u64) -> Vec<Link> {
        let mut rng = random(self.seed, PURPOSE_LIST, user);
        let movies = access::distinct(&mut rng, self.job.movies, self.job.watches);
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

    /// A link as the schema stores it: the id where it has one, then user, movie and the rest.
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

    /// The user of a question what a user wants to watch.
    pub fn asked_user(&self, question: u64) -> u64 {
        random(self.seed, PURPOSE_WANTS, question).below(self.job.users)
    }

    /// The movie of a question who wants to watch a movie.
    pub fn asked_movie(&self, question: u64) -> u64 {
        random(self.seed, PURPOSE_WATCHERS, question).below(self.job.movies)
    }
}

/// Two to four syllables.
fn word(rng: &mut Rng) -> String {
    let syllable = |rng: &mut Rng| SYLLABLES[rng.below(SYLLABLES.len() as u64) as usize];
    (0..2 + rng.below(3)).map(|_| syllable(rng)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::model::tests::job;
    use stablebench_protocol::{KeyKind, KeysTask, LinkSchema};

    fn rows() -> Rows {
        Rows::new(&job(LinkSchema::Rowid, KeyKind::Integer, KeysTask::Links), 1)
    }

    #[test]
    fn a_list_has_different_movies_in_no_order() {
        for user in 0..12 {
            let list = rows().list(user);
            let mut movies: Vec<u64> = list.iter().map(|link| link.movie).collect();
            assert!(!movies.is_sorted());
            movies.sort_unstable();
            movies.dedup();
            assert_eq!(movies.len(), 20);
            assert!(movies.iter().all(|movie| *movie < 40));
            assert!(list.iter().all(|link| link.updated >= link.created));
        }
        assert_ne!(rows().list(0)[0].movie, rows().list(1)[0].movie);
    }

    #[test]
    fn the_same_lists_are_stored_under_every_key() {
        let other = job(LinkSchema::Id, KeyKind::UuidV4, KeysTask::Links);
        assert_eq!(rows().list(3), Rows::new(&other, 1).list(3));
        assert_ne!(rows().list(3), Rows::new(&other, 2).list(3));
    }

    #[test]
    fn titles_and_names_look_like_such() {
        let lengths = |texts: &mut dyn Iterator<Item = Value>| -> Vec<u64> {
            texts.map(|text| text.as_ref().bytes()).collect()
        };
        let titles = lengths(&mut (0..40).map(|movie| rows().title(movie)));
        assert!(titles.iter().all(|bytes| (9..=51).contains(bytes)), "{titles:?}");
        let names = lengths(&mut (0..12).map(|user| rows().name(user)));
        assert!(names.iter().all(|bytes| (5..=15).contains(bytes)), "{names:?}");
        assert_eq!(rows().movie(3)[1], rows().title(3));
    }
}
