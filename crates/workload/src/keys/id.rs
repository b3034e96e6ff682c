//! What identifies users, movies and links.
//!
//! ```text
//!   integer   1, 2, 3, …                                      8 bytes as SQLite counts them
//!   ULID      48 bits of milliseconds │ 80 random bits                           16 bytes
//!   UUIDv7    48 bits of milliseconds │ version │ 12 random │ variant │ 62 random  16 bytes
//!   UUIDv4    48 random │ version │ 12 random │ variant │ 62 random                16 bytes
//! ```
//!
//! The clock is seeded. It goes on by a millisecond every so many rows, as the job says, and
//! for a moment longer between two lists. Ids of one millisecond are in no order, since ULIDs
//! and UUIDs are made one by one and none looks at the one before.

use stablebench_protocol::{KeyKind, Keys};

use crate::Rng;
use crate::sql::Value;

/// 2023-07-15, in milliseconds since 1970.
const BEGINNING: u64 = 1_689_379_200_000;
const HOUR: u64 = 3_600_000;
/// The longest pause between two lists, in milliseconds.
const PAUSE: u64 = 4;

/// Which row.
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

/// A generator for one thing among many of its kind, so that none depends on another.
pub fn random(seed: u64, purpose: u64, number: u64) -> Rng {
    let stream = Rng::new(Rng::new(seed).next_u64() ^ purpose).next_u64();
    // Neighbouring states of SplitMix64 give the same numbers one draw apart; hashed ones
    // do not.
    Rng::new(Rng::new(stream ^ number).next_u64())
}

impl Identity {
    /// The id, as SQL has it.
    pub fn value(self, job: &Keys, seed: u64) -> Value {
        let random = || self.random(seed);
        match job.key {
            KeyKind::Integer => Value::Integer(self.number(job) as i64),
            KeyKind::Ulid => Value::Blob(ulid(self.milliseconds(job, seed), random())),
            KeyKind::UuidV4 => Value::Blob(uuid_v4(random())),
            KeyKind::UuidV7 => Value::Blob(uuid_v7(self.milliseconds(job, seed), random())),
        }
    }

    /// When the row came into being, in milliseconds since 1970.
    pub fn milliseconds(self, job: &Keys, seed: u64) -> u64 {
        let start = BEGINNING + random(seed, PURPOSE_CLOCK, 0).below(24 * HOUR);
        let a_millisecond = job.rows_a_millisecond.max(1);
        match self {
            Self::Movie(number) => start + number / a_millisecond,
            // Later than the last movie, whatever their number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::model::tests::job;
    use stablebench_protocol::{KeysTask, LinkSchema};
    use std::collections::BTreeSet;

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
}
