//! The model of the keys suite: the tables, and what queries must find, without SQL.

use super::rows::{Link, Rows};
use crate::job::{Keys, KeysTask};
use stablebench_protocol::{Digest, Part, Result};
use stablebench_workload::sql::{Value, add_row};
use stablebench_workload::{ContentDigest, Expected, Model};

/// The tables, in memory. Queries look at every link.
#[derive(Clone, Debug, Default)]
pub struct KeysModel {
    movies: Vec<Row>,
    pub(super) users: Vec<Row>,
    pub(super) links: Vec<(Link, Row)>,
}

type Row = Vec<Value>;

impl Model for KeysModel {
    fn execute(&mut self, part: &Part) -> Result<Expected> {
        Ok(self.keys(&part.job.decode()?, part))
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        let mut add = |place, row: &Row| add_row(&mut digest, place, row.iter().map(Value::as_ref));
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

    /// The links to movies that were not watched yet.
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
