//! What the tables must hold and the questions must find, computed without SQL.

use stablebench_protocol::{Digest, Job, Keys, KeysTask, Part};

use super::row::{Link, Rows};
use crate::sql::{Value, add_row};
use crate::{ContentDigest, Expected, Tables};

/// The tables, in memory. Questions are answered by looking at every link.
#[derive(Clone, Debug, Default)]
pub struct Model {
    movies: Vec<Row>,
    users: Vec<Row>,
    links: Vec<(Link, Row)>,
}

type Row = Vec<Value>;

impl Tables for Model {
    fn perform(&mut self, part: &Part) -> Expected {
        match &part.job {
            Job::Keys(job) => self.keys(job, part),
            // Work of other suites is on other tables.
            _ => Expected::default(),
        }
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        let mut add = |place, row: &Row| add_row(&mut digest, place, row.iter().map(Value::as_ref));
        self.users.iter().for_each(|row| add(0, row));
        self.movies.iter().for_each(|row| add(1, row));
        self.links.iter().for_each(|(_, row)| add(2, row));
        digest.value()
    }

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}

impl Model {
    fn keys(&mut self, job: &Keys, part: &Part) -> Expected {
        let rows = Rows::new(job, part.seed);
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

    /// Links to movies that were not watched yet.
    fn wanted(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().map(|(link, _)| link).filter(|link| link.watched.is_none())
    }
}

fn written(rows: &mut dyn Iterator<Item = &Row>) -> Expected {
    let mut expected = Expected::default();
    for row in rows {
        expected.rows += 1;
        expected.bytes += row.iter().map(|value| value.as_ref().bytes()).sum::<u64>();
    }
    expected
}

/// What questions find: rows of one column, in no order among those of a question.
#[derive(Default)]
struct Found {
    digest: ContentDigest,
    bytes: u64,
}

impl Found {
    fn rows(&self) -> u64 {
        self.digest.value().rows
    }

    /// `before` rows were found by the questions before this one.
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

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::keys::{operations, script};
    use stablebench_protocol::{KeyKind, LinkSchema};

    /// A job of 12 users with 20 of 40 movies each.
    pub fn job(schema: LinkSchema, key: KeyKind, task: KeysTask) -> Keys {
        Keys {
            schema,
            key,
            users: 12,
            movies: 40,
            watches: 20,
            rows_a_millisecond: 16,
            foreign_keys: true,
            task,
        }
    }

    const SCHEMAS: [LinkSchema; 5] = [
        LinkSchema::Id,
        LinkSchema::IdWithoutRowid,
        LinkSchema::PairWithoutRowid,
        LinkSchema::Pair,
        LinkSchema::Rowid,
    ];
    const KINDS: [KeyKind; 4] = [KeyKind::Integer, KeyKind::Ulid, KeyKind::UuidV4, KeyKind::UuidV7];

    fn part(job: Keys, from: u64, count: u64) -> Part {
        Part { job: Job::Keys(job), seed: 1, from, count, each: false }
    }

    fn populated(schema: LinkSchema, key: KeyKind, cut: u64) -> Model {
        let mut model = Model::default();
        for task in [KeysTask::Create, KeysTask::Users, KeysTask::Movies, KeysTask::Links] {
            let job = job(schema, key, task);
            let all = operations(&job, 0);
            for from in (0..all).step_by(cut as usize) {
                model.perform(&part(job, from, cut.min(all - from)));
            }
        }
        model
    }

    /// The same rows whatever a message holds, and what the model counts is what the script
    /// would write.
    #[test]
    fn the_cut_into_messages_changes_nothing() {
        for schema in SCHEMAS {
            for key in KINDS {
                let whole = populated(schema, key, u64::MAX);
                assert_eq!(whole.content().rows, 12 + 40 + 240, "{schema:?} {key:?}");
                assert_eq!(whole.content(), populated(schema, key, 7).content());
                let job = job(schema, key, KeysTask::Links);
                let all = script(&job, 1, 0, 12);
                let cut: Vec<_> =
                    (0..12).flat_map(|user| script(&job, 1, user, 1).operations).collect();
                assert_eq!(all.operations, cut);
                let calls = all.operations.iter().flatten();
                let bytes: u64 = calls
                    .flat_map(|call| &call.parameters)
                    .map(|parameter| parameter.as_ref().bytes())
                    .sum();
                let expected = Model::default().perform(&part(job, 0, 12));
                assert_eq!(expected, Expected { rows: 240, bytes, results: None });
            }
        }
    }

    /// Every question of every user, against the lists themselves.
    #[test]
    fn questions_find_what_is_on_the_lists() {
        let mut model = populated(LinkSchema::Id, KeyKind::Ulid, u64::MAX);
        let rows = Rows::new(&job(LinkSchema::Id, KeyKind::Ulid, KeysTask::Wants), 1);
        let wanted = |user| rows.list(user).into_iter().filter(|link| link.watched.is_none());
        let questions = part(job(LinkSchema::Id, KeyKind::Ulid, KeysTask::Wants), 0, 30);
        let found = model.perform(&questions);
        let counted: usize = (0..30).map(|number| wanted(rows.asked_user(number)).count()).sum();
        assert_eq!(found.rows, counted as u64);
        assert!((300..=600).contains(&counted), "{counted} of 30 lists of 20");

        let questions = part(job(LinkSchema::Id, KeyKind::Ulid, KeysTask::Watchers), 0, 30);
        let found = model.perform(&questions);
        let has = |user, movie| wanted(user).any(|link| link.movie == movie);
        let counted: usize = (0..30)
            .map(|number| (0..12).filter(|user| has(*user, rows.asked_movie(number))).count())
            .sum();
        assert_eq!(found.rows, counted as u64);
        assert!(counted > 60, "{counted} watchers of 30 movies");
    }

    /// Keys decide how rows are stored, not what is found.
    #[test]
    fn questions_find_the_same_under_every_key() {
        for task in [KeysTask::Wants, KeysTask::Watchers] {
            let found = |schema, key| {
                populated(schema, key, u64::MAX).perform(&part(job(schema, key, task), 0, 9))
            };
            let first = found(LinkSchema::Id, KeyKind::Integer);
            assert_ne!(first.rows, 0);
            for schema in SCHEMAS {
                assert!(KINDS.iter().all(|key| found(schema, *key) == first), "{schema:?}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_seen() {
        let model = populated(LinkSchema::Id, KeyKind::Ulid, u64::MAX);
        let mut other = model.clone();
        other.links[3].1[3] = Value::Integer(9);
        assert_ne!(model.content(), other.content());
        let mut other = model.clone();
        other.links.pop();
        assert_ne!(model.content(), other.content());
        let mut other = model.clone();
        other.users.swap(0, 1);
        assert_eq!(model.content(), other.content(), "tables have no order");
    }
}
