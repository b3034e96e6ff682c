//! Built-in scripts: those of pgbench, and the core workloads of YCSB.
//!
//! The tables are pgbench's, with a primary key for each but the history, and YCSB's, with ten fields:
//!
//! ```text
//!   scale s    pgbench_branches s, pgbench_tellers 10 s, pgbench_accounts 100 000 s
//!   scale s    usertable 1 000 s
//! ```

/// A built-in script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub about: &'static str,
    /// The SQL that prepares the tables, where `:scale` is the scale.
    pub setup: &'static str,
    /// The scripts with their weights.
    pub scripts: &'static [(u32, &'static str)],
}

const PGBENCH: &str = "\
CREATE TABLE pgbench_branches(bid INTEGER PRIMARY KEY, bbalance INTEGER, filler TEXT);
CREATE TABLE pgbench_tellers(tid INTEGER PRIMARY KEY, bid INTEGER, tbalance INTEGER, filler TEXT);
CREATE TABLE pgbench_accounts(aid INTEGER PRIMARY KEY, bid INTEGER, abalance INTEGER, filler TEXT);
CREATE TABLE pgbench_history(tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, mtime TEXT, filler TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :scale)
  INSERT INTO pgbench_branches SELECT i, 0, '' FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10 * :scale)
  INSERT INTO pgbench_tellers SELECT i, (i - 1) / 10 + 1, 0, '' FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000 * :scale)
  INSERT INTO pgbench_accounts SELECT i, (i - 1) / 100000 + 1, 0, printf('%84s', '') FROM n;
";

const TPCB: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history(tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

const SIMPLE_UPDATE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history(tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

const SELECT_ONLY: &str = "\
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
";

const YCSB: &str = "\
CREATE TABLE usertable(ycsb_key INTEGER PRIMARY KEY, field0 TEXT, field1 TEXT, field2 TEXT, field3 TEXT,
  field4 TEXT, field5 TEXT, field6 TEXT, field7 TEXT, field8 TEXT, field9 TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000 * :scale)
  INSERT INTO usertable SELECT i, printf('%0100d', i), printf('%0100d', i), printf('%0100d', i),
    printf('%0100d', i), printf('%0100d', i), printf('%0100d', i), printf('%0100d', i),
    printf('%0100d', i), printf('%0100d', i), printf('%0100d', i) FROM n;
";

/// YCSB's exponent 0.99 is below pgbench's smallest; permute spreads the frequent keys.
const READ: &str = "\
\\set rank random_zipfian(1, 1000 * :scale, 1.001)
\\set key permute(:rank - 1, 1000 * :scale) + 1
SELECT * FROM usertable WHERE ycsb_key = :key;
";

const UPDATE: &str = "\
\\set rank random_zipfian(1, 1000 * :scale, 1.001)
\\set key permute(:rank - 1, 1000 * :scale) + 1
\\set value random(0, 1000000000)
UPDATE usertable SET field0 = printf('%0100d', :value) WHERE ycsb_key = :key;
";

const READ_LATEST: &str = "\
\\set rank random_zipfian(1, 1000 * :scale, 1.001)
SELECT * FROM usertable WHERE ycsb_key = (SELECT max(ycsb_key) FROM usertable) - :rank + 1;
";

const INSERT: &str = "\
\\set value random(0, 1000000000)
INSERT INTO usertable SELECT max(ycsb_key) + 1, printf('%0100d', :value), printf('%0100d', :value),
  printf('%0100d', :value), printf('%0100d', :value), printf('%0100d', :value), printf('%0100d', :value),
  printf('%0100d', :value), printf('%0100d', :value), printf('%0100d', :value), printf('%0100d', :value)
  FROM usertable;
";

const SCAN: &str = "\
\\set rank random_zipfian(1, 1000 * :scale, 1.001)
\\set key permute(:rank - 1, 1000 * :scale) + 1
\\set length random(1, 100)
SELECT * FROM usertable WHERE ycsb_key >= :key ORDER BY ycsb_key LIMIT :length;
";

const READ_MODIFY_WRITE: &str = "\
\\set rank random_zipfian(1, 1000 * :scale, 1.001)
\\set key permute(:rank - 1, 1000 * :scale) + 1
\\set value random(0, 1000000000)
BEGIN;
SELECT * FROM usertable WHERE ycsb_key = :key;
UPDATE usertable SET field0 = printf('%0100d', :value) WHERE ycsb_key = :key;
END;
";

/// All built-in scripts.
pub const ALL: &[Builtin] = &[
    Builtin {
        name: "tpcb-like",
        about: "pgbench's default: three updates, a query, an insertion",
        setup: PGBENCH,
        scripts: &[(1, TPCB)],
    },
    Builtin {
        name: "simple-update",
        about: "the same without tellers and branches",
        setup: PGBENCH,
        scripts: &[(1, SIMPLE_UPDATE)],
    },
    Builtin {
        name: "select-only",
        about: "one query by key",
        setup: PGBENCH,
        scripts: &[(1, SELECT_ONLY)],
    },
    Builtin {
        name: "ycsb-a",
        about: "half reads, half updates",
        setup: YCSB,
        scripts: &[(50, READ), (50, UPDATE)],
    },
    Builtin {
        name: "ycsb-b",
        about: "95 % reads, 5 % updates",
        setup: YCSB,
        scripts: &[(95, READ), (5, UPDATE)],
    },
    Builtin { name: "ycsb-c", about: "reads", setup: YCSB, scripts: &[(1, READ)] },
    Builtin {
        name: "ycsb-d",
        about: "95 % reads of new rows, 5 % insertions",
        setup: YCSB,
        scripts: &[(95, READ_LATEST), (5, INSERT)],
    },
    Builtin {
        name: "ycsb-e",
        about: "95 % scans of up to 100 rows, 5 % insertions",
        setup: YCSB,
        scripts: &[(95, SCAN), (5, INSERT)],
    },
    Builtin {
        name: "ycsb-f",
        about: "half reads, half read and update",
        setup: YCSB,
        scripts: &[(50, READ), (50, READ_MODIFY_WRITE)],
    },
];

/// Returns the built-in script with a name.
pub fn named(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use crate::script::expression::{Number, Random};

    /// Zipfian numbers are drawn until one fits, so the bits have to change.
    struct Counter(u64);

    impl Random for Counter {
        fn bits(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.0 ^ self.0 >> 29
        }
    }

    #[test]
    fn all_scripts_have_transactions() {
        for builtin in ALL {
            for (weight, text) in builtin.scripts {
                assert!(*weight > 0);
                let script = Script::parse(builtin.name, text).unwrap();
                let scale = [("scale".to_owned(), Number::Integer(2))];
                let calls = script.transaction(&scale, &mut Counter(1)).unwrap();
                assert_eq!(calls.len(), script.texts.len(), "{}", builtin.name);
            }
            assert_eq!(named(builtin.name), Some(builtin));
        }
    }
}
