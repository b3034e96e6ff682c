//! The work of the suite: watch lists, whose rows are identified in different ways.
//!
//! ```text
//!   witches (id, name)      movies (id, title, year)
//!      └──────── witch_watch ────────┘     a row for each movie on a user's list
//! ```
//!
//! Users are called witches, as where this was published. A job is one step: creating the
//! tables, adding users, adding movies, adding links (one user's list an operation), and the
//! two questions. Which rows there are and which are asked for follows from the seed alone;
//! the schema and the kind of key decide how the same rows are stored.

mod id;
mod model;
mod row;
mod schema;

use stablebench_protocol::{Keys, KeysTask};

use crate::sql::{Call, Script, Transaction, Value};

pub use model::Model;
pub use schema::{LINKS, TABLES, USER_INDEX, WATCH_INDEX, create, link_columns, link_order};

use id::Identity;
use row::Rows;

/// How many operations a job has; those of questions are `questions`.
pub fn operations(job: &Keys, questions: u64) -> u64 {
    match job.task {
        KeysTask::Create => 1,
        KeysTask::Users | KeysTask::Links => job.users,
        KeysTask::Movies => job.movies,
        KeysTask::Wants | KeysTask::Watchers => questions,
    }
}

/// The operations from `from` on, as SQL. None for [`KeysTask::Create`], whose statements
/// cannot be prepared before the tables are there: see [`create`].
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
        KeysTask::Wants => (schema::wants(job.schema), Transaction::Message, &|question| {
            vec![vec![rows.id(Identity::User(rows.asked_user(question)))]]
        }),
        KeysTask::Watchers => (schema::watchers(job.schema), Transaction::Message, &|question| {
            vec![vec![rows.id(Identity::Movie(rows.asked_movie(question)))]]
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
