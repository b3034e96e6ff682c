use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::SuiteJob;

/// A job of the suite keys: one task on watch lists.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The schema of the link table.
    pub schema: LinkSchema,
    /// The ids of users, movies and links.
    pub key: KeyKind,
    /// The number of users.
    pub users: u64,
    /// The number of movies.
    pub movies: u64,
    /// The number of movies on the list of each user; all movies if there are fewer.
    pub watches: u64,
    /// The number of rows created in a millisecond, whose ids with a time have no order. Not
    /// 0.
    pub rows_a_millisecond: u64,
    /// True if SQLite checks that the user and the movie of a new link exist.
    pub foreign_keys: bool,
    /// The task.
    pub task: KeysTask,
}

impl SuiteJob for Keys {
    const SUITE: &'static str = "keys";
}

/// The schema of the table that links users and movies.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSchema {
    /// (a): an id is the primary key.
    #[serde(rename = "id")]
    Id,
    /// (b): the same, `WITHOUT ROWID`.
    #[serde(rename = "id_without_rowid")]
    IdWithoutRowid,
    /// (c): the pair of user and movie is the primary key, `WITHOUT ROWID`.
    #[serde(rename = "pair_without_rowid")]
    PairWithoutRowid,
    /// (c) with a rowid, which was not published.
    #[serde(rename = "pair")]
    Pair,
    /// (d): no primary key except the implicit rowid.
    #[serde(rename = "rowid")]
    Rowid,
}

/// The kind of id of a row.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Integers, starting at 1.
    #[serde(rename = "integer")]
    Integer,
    /// 48 bits of time and 80 random ones, 16 bytes.
    #[serde(rename = "ulid")]
    Ulid,
    /// 122 random bits, 16 bytes.
    #[serde(rename = "uuid_v4")]
    UuidV4,
    /// 48 bits of time and 74 random ones, 16 bytes.
    #[serde(rename = "uuid_v7")]
    UuidV7,
}

/// The task of a job. Each comment describes one operation.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysTask {
    /// Creates a table or an index.
    #[serde(rename = "create")]
    Create,
    /// Adds a movie.
    #[serde(rename = "movies")]
    Movies,
    /// Adds a user.
    #[serde(rename = "users")]
    Users,
    /// Adds the list of a user, in a transaction of its own.
    #[serde(rename = "links")]
    Links,
    /// Queries the movies that a user wants to watch.
    #[serde(rename = "wants")]
    Wants,
    /// Queries the users who want to watch a movie.
    #[serde(rename = "watchers")]
    Watchers,
}
