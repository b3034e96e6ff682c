//! The tables in SQL.
//!
//! ```text
//!                       primary key       rowid    b-trees of the link table
//!   (a) id              id                yes      table, key index, user index, movie index
//!   (b) id              id                no       table, user index, movie index
//!   (c) pair            (witch, watch)    no       table, user index, movie index
//!       pair with rowid (witch, watch)    yes      table, key index, user index, movie index
//!   (d) rowid           none              yes      table, user index, movie index
//! ```
//!
//! With integer keys, an `id` with rowid is the rowid and needs no index of its own. All five schemas
//! have the same other columns, so that they differ in their keys alone.

use crate::job::{KeyKind, Keys, LinkSchema};

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
pub fn add_movie() -> String {
    "INSERT INTO movies (id, title, year) VALUES (?, ?, ?)".to_owned()
}

/// The statement that adds a user: id, name.
pub fn add_user() -> String {
    "INSERT INTO witches (id, name) VALUES (?, ?)".to_owned()
}

/// The statement that adds a link: the id if there is one, user, movie, and the rest.
pub fn add_link(schema: LinkSchema) -> String {
    let columns = link_columns(schema);
    let parameters = vec!["?"; columns.split(", ").count()].join(", ");
    format!("INSERT INTO {LINKS} ({columns}) VALUES ({parameters})")
}

/// The query for the titles that a user has not watched yet.
pub fn wants(schema: LinkSchema) -> String {
    format!(
        "SELECT movies.title FROM {LINKS} JOIN movies ON movies.id = {LINKS}.watch \
         WHERE {LINKS}.{} = ? AND NOT {LINKS}.watched",
        user(schema)
    )
}

/// The query for the names of users who have a movie on their lists and have not watched it yet.
pub fn watchers(schema: LinkSchema) -> String {
    format!(
        "SELECT witches.name FROM {LINKS} JOIN witches ON witches.id = {LINKS}.{} \
         WHERE {LINKS}.watch = ? AND NOT {LINKS}.watched",
        user(schema)
    )
}

/// Returns `true` if links have ids of their own.
pub fn has_id(schema: LinkSchema) -> bool {
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
