//! The keys suite: watch lists, whose rows have different kinds of ids.
//!
//! ```text
//!   witches (id, name)      movies (id, title, year)
//!      └──────── witch_watch ────────┘     a row for each movie on a user's list
//! ```
//!
//! Users are called witches, as in the publication. A job is one task: creating the tables, adding
//! users, adding movies, adding links (one user's list per operation), and two queries. The rows and
//! the queries follow from the seed alone. The schema and the kind of key decide how the same rows
//! are stored.

mod model;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

pub use model::KeysModel;
pub use schema::{LINKS, TABLES, USER_INDEX, WATCH_INDEX, create, link_columns, link_order};

use crate::job::{Keys, KeysTask};
use rows::{Identity, Rows};
use stablebench_workload::sql::{Call, Script, Transaction, Value};

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
    let rows = Rows::new(job, seed);
    let (statement, transaction, parameters): (_, _, &dyn Fn(u64) -> Vec<Vec<Value>>) = match job
        .task
    {
        KeysTask::Create => return Script::default(),
        KeysTask::Users => {
            (schema::add_user(), Transaction::Message, &|user| vec![rows.user(user)])
        }
        KeysTask::Movies => {
            (schema::add_movie(), Transaction::Message, &|movie| vec![rows.movie(movie)])
        }
        KeysTask::Links => (schema::add_link(job.schema), Transaction::Operations(1), &|user| {
            rows.list(user).iter().map(|link| rows.link(link)).collect()
        }),
        KeysTask::Wants => (schema::wants(job.schema), Transaction::Message, &|query| {
            vec![vec![rows.id(Identity::User(rows.asked_user(query)))]]
        }),
        KeysTask::Watchers => (schema::watchers(job.schema), Transaction::Message, &|query| {
            vec![vec![rows.id(Identity::Movie(rows.asked_movie(query)))]]
        }),
    };
    let calls = |number| {
        let call = |parameters| Call { statement: 0, parameters };
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
