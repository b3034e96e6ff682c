use super::*;
use stablebench_protocol::Job;
use std::collections::BTreeSet;

/// A job of 12 users with 20 of 40 movies each.
fn job(schema: LinkSchema, key: KeyKind, task: KeysTask) -> Keys {
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

fn part(job: Keys, from: u64, count: u64) -> JobPart {
    JobPart { job: Job::new(&job), seed: 1, from, count, each: false }
}

fn populated(schema: LinkSchema, key: KeyKind, cut: u64) -> KeysModel {
    let mut model = KeysModel::default();
    for task in [KeysTask::Create, KeysTask::Users, KeysTask::Movies, KeysTask::Links] {
        let job = job(schema, key, task);
        let all = operations(&job, 0);
        for from in (0..all).step_by(cut as usize) {
            model.execute(&part(job, from, cut.min(all - from))).unwrap();
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
            let expected = KeysModel::default().execute(&part(job, 0, 12)).unwrap();
            assert_eq!(expected, Expected { rows: 240, bytes, results: None });
        }
    }
}

/// Every question of every user, against the lists themselves.
#[test]
fn questions_find_what_is_on_the_lists() {
    let mut model = populated(LinkSchema::Id, KeyKind::Ulid, u64::MAX);
    let rows = RowGenerator::new(&job(LinkSchema::Id, KeyKind::Ulid, KeysTask::Wants), 1);
    let wanted = |user| rows.list(user).into_iter().filter(|link| link.watched.is_none());
    let questions = part(job(LinkSchema::Id, KeyKind::Ulid, KeysTask::Wants), 0, 30);
    let found = model.execute(&questions).unwrap();
    let counted: usize = (0..30).map(|number| wanted(rows.asked_user(number)).count()).sum();
    assert_eq!(found.rows, counted as u64);
    assert!((300..=600).contains(&counted), "{counted} of 30 lists of 20");

    let questions = part(job(LinkSchema::Id, KeyKind::Ulid, KeysTask::Watchers), 0, 30);
    let found = model.execute(&questions).unwrap();
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
            populated(schema, key, u64::MAX).execute(&part(job(schema, key, task), 0, 9)).unwrap()
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

fn keys(key: KeyKind) -> Keys {
    job(LinkSchema::Id, key, KeysTask::Links)
}

fn identities(job: &Keys) -> Vec<Identity> {
    let links = (0..job.users)
        .flat_map(|user| (0..job.watches).map(move |place| Identity::Link { user, place }));
    (0..job.movies)
        .map(Identity::Movie)
        .chain((0..job.users).map(Identity::User))
        .chain(links)
        .collect()
}

fn blobs(key: KeyKind, seed: u64) -> Vec<[u8; 16]> {
    let job = keys(key);
    let blob = |identity: Identity| match identity.value(&job, seed) {
        Value::Blob(bytes) => <[u8; 16]>::try_from(bytes).unwrap(),
        other => panic!("{other:?}"),
    };
    identities(&job).into_iter().map(blob).collect()
}

#[test]
fn the_clock_never_goes_back() {
    for rows_a_millisecond in [0, 1, 3, 16, 1_000] {
        let job = Keys { rows_a_millisecond, ..keys(KeyKind::Ulid) };
        for seed in 0..20 {
            let times: Vec<u64> =
                identities(&job).iter().map(|row| row.milliseconds(&job, seed)).collect();
            assert!(times.is_sorted(), "seed {seed}");
            assert!(times[0] >= BEGINNING);
            let once = times.windows(2).all(|two| two[0] < two[1]);
            assert_eq!(once, rows_a_millisecond < 2, "a time of its own for each row");
        }
    }
}

#[test]
fn ulids_and_uuids_are_what_they_are_called() {
    let job = keys(KeyKind::Ulid);
    let rows = identities(&job);
    for (bytes, row) in blobs(KeyKind::Ulid, 1).into_iter().zip(&rows) {
        let ulid = ulid::Ulid::from_bytes(bytes);
        assert_eq!(ulid.timestamp_ms(), row.milliseconds(&job, 1));
        assert_eq!(ulid::Ulid::from_string(&ulid.to_string()), Ok(ulid));
    }
    for (key, version) in [(KeyKind::UuidV4, 4), (KeyKind::UuidV7, 7)] {
        for (bytes, row) in blobs(key, 1).into_iter().zip(&rows) {
            let uuid = uuid::Uuid::from_bytes(bytes);
            assert_eq!(uuid.get_version_num(), version);
            assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
            if version == 7 {
                let time = bytes[..6].iter().fold(0, |time, byte| time << 8 | u64::from(*byte));
                assert_eq!(time, row.milliseconds(&job, 1));
            }
        }
    }
}

#[test]
fn ids_differ_from_each_other_and_with_the_seed() {
    for key in [KeyKind::Ulid, KeyKind::UuidV4, KeyKind::UuidV7] {
        let first: BTreeSet<[u8; 16]> = blobs(key, 1).into_iter().collect();
        assert_eq!(first.len(), blobs(key, 1).len(), "{key:?}");
        assert_eq!(first, blobs(key, 1).into_iter().collect());
        assert!(blobs(key, 2).iter().all(|id| !first.contains(id)), "{key:?}");
    }
}

/// Up to the millisecond, whose rows are in no order.
#[test]
fn those_with_a_time_are_sorted_by_it_and_random_ones_are_not() {
    for key in [KeyKind::Ulid, KeyKind::UuidV7] {
        let ids = blobs(key, 1);
        assert!(ids.is_sorted_by_key(|id| id[..6].to_vec()), "{key:?}");
        assert!(!ids.is_sorted(), "{key:?}: ids of a millisecond are in no order");
    }
    assert!(!blobs(KeyKind::UuidV4, 1).is_sorted_by_key(|id| id[..6].to_vec()));
}

#[test]
fn integers_count_from_one() {
    let job = keys(KeyKind::Integer);
    let integers = |rows: &mut dyn Iterator<Item = Identity>| -> Vec<Value> {
        rows.map(|row| row.value(&job, 1)).collect()
    };
    let counted = |count| (1..=count).map(Value::Integer).collect::<Vec<_>>();
    assert_eq!(integers(&mut (0..job.movies).map(Identity::Movie)), counted(40));
    assert_eq!(integers(&mut (0..job.users).map(Identity::User)), counted(12));
    let links = &mut identities(&job).into_iter().skip(52);
    assert_eq!(integers(links), counted(12 * 20));
}

fn list_rows() -> RowGenerator {
    RowGenerator::new(&job(LinkSchema::Rowid, KeyKind::Integer, KeysTask::Links), 1)
}

#[test]
fn a_list_has_different_movies_in_no_order() {
    for user in 0..12 {
        let list = list_rows().list(user);
        let mut movies: Vec<u64> = list.iter().map(|link| link.movie).collect();
        assert!(!movies.is_sorted());
        movies.sort_unstable();
        movies.dedup();
        assert_eq!(movies.len(), 20);
        assert!(movies.iter().all(|movie| *movie < 40));
        assert!(list.iter().all(|link| link.updated >= link.created));
    }
    assert_ne!(list_rows().list(0)[0].movie, list_rows().list(1)[0].movie);
}

#[test]
fn the_same_lists_are_stored_under_every_key() {
    let other = job(LinkSchema::Id, KeyKind::UuidV4, KeysTask::Links);
    assert_eq!(list_rows().list(3), RowGenerator::new(&other, 1).list(3));
    assert_ne!(list_rows().list(3), RowGenerator::new(&other, 2).list(3));
}

#[test]
fn titles_and_names_look_like_such() {
    let lengths = |texts: &mut dyn Iterator<Item = Value>| -> Vec<u64> {
        texts.map(|text| text.as_ref().bytes()).collect()
    };
    let titles = lengths(&mut (0..40).map(|movie| list_rows().title(movie)));
    assert!(titles.iter().all(|bytes| (9..=51).contains(bytes)), "{titles:?}");
    let names = lengths(&mut (0..12).map(|user| list_rows().name(user)));
    assert!(names.iter().all(|bytes| (5..=15).contains(bytes)), "{names:?}");
    assert_eq!(list_rows().movie(3)[1], list_rows().title(3));
}

#[test]
fn the_statements_of_two_schemas() {
    let create = |schema, key| create(&job(schema, key, KeysTask::Create));
    assert_eq!(
        create(LinkSchema::IdWithoutRowid, KeyKind::Integer),
        "CREATE TABLE witches (id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL);\n\
         CREATE TABLE movies (id INTEGER NOT NULL PRIMARY KEY, title TEXT NOT NULL, \
         year INTEGER NOT NULL);\n\
         CREATE TABLE witch_watch (id INTEGER NOT NULL PRIMARY KEY, \
         witch INTEGER NOT NULL REFERENCES witches (id), \
         watch INTEGER NOT NULL REFERENCES movies (id), \
         priority INTEGER, public INTEGER NOT NULL, watched INTEGER NOT NULL, \
         when_watched INTEGER, created_at INTEGER NOT NULL, last_updated INTEGER NOT NULL) \
         WITHOUT ROWID;\n\
         CREATE INDEX witch_watch_user ON witch_watch (witch);\n\
         CREATE INDEX witch_watch_watch ON witch_watch (watch)"
    );
    assert!(create(LinkSchema::Pair, KeyKind::Ulid).contains(", PRIMARY KEY (witch, watch));"));
    assert_eq!(
        add_link(LinkSchema::Rowid),
        "INSERT INTO witch_watch (user, watch, priority, public, watched, when_watched, \
         created_at, last_updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    );
    assert_eq!(
        watchers(LinkSchema::Rowid),
        "SELECT witches.name FROM witch_watch JOIN witches ON witches.id = witch_watch.user \
         WHERE witch_watch.watch = ? AND NOT witch_watch.watched"
    );
}
