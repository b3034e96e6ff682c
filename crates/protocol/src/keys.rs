use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite: one step in the life of a watch list.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// How the link table is declared.
    pub schema: LinkSchema,
    /// What identifies users, movies and links.
    pub key: KeyKind,
    /// How many users there are.
    pub users: u64,
    /// How many movies there are.
    pub movies: u64,
    /// How many movies each user has on the list; all that there are where those are fewer.
    pub watches: u64,
    /// How many rows come into being in a millisecond; ids with a time are in no order among
    /// those. Not 0.
    pub rows_a_millisecond: u64,
    /// Whether SQLite looks for the user and the movie of a link that is added.
    pub foreign_keys: bool,
    /// What is done.
    pub task: KeysTask,
}

/// How the table that links users and movies is declared.
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
    /// (c) with rowid, which was not published.
    #[serde(rename = "pair")]
    Pair,
    /// (d): no primary key but the implicit rowid.
    #[serde(rename = "rowid")]
    Rowid,
}

/// What identifies a row.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Integers from 1 on.
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

/// What is done in a job, and what one operation of it is.
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
    /// Asks what a user wants to watch.
    #[serde(rename = "wants")]
    Wants,
    /// Asks who wants to watch a movie.
    #[serde(rename = "watchers")]
    Watchers,
}
