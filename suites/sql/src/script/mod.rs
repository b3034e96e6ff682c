//! Scripts of pgbench, each a transaction with variables, random numbers and conditions, and those that
//! are built in.
//!
//! ```text
//!   \set id random(1, 100000)
//!   BEGIN;
//!   UPDATE accounts SET balance = balance + 1 WHERE id = :id;
//!   \if :id > 50000
//!     SELECT balance FROM accounts WHERE id = :id;
//!   \endif
//!   END;
//! ```
//!
//! A variable in a statement becomes a parameter, whose value is bound. Source: the section "Custom
//! Scripts" of pgbench's manual.
//!
//! The built-in scripts are those of pgbench, and the core workloads of YCSB. The tables are pgbench's,
//! with a primary key for each but the history, and YCSB's, with ten fields:
//!
//! ```text
//!   scale s    pgbench_branches s, pgbench_tellers 10 s, pgbench_accounts 100 000 s
//!   scale s    usertable 1 000 s
//! ```

#![allow(
    missing_docs,
    reason = "the names are those of pgbench's language, and the help describes the options"
)]

pub mod expression;
mod parser;
#[cfg(feature = "tool")]
mod plan;
#[cfg(feature = "tool")]
mod setup;
#[cfg(feature = "tool")]
mod tables;
#[cfg(feature = "tool")]
mod transactions;
#[cfg(feature = "tool")]
mod work;

#[cfg(feature = "tool")]
pub use plan::{FILES, SqlSuite};
#[cfg(feature = "tool")]
pub use setup::{MAGIC, check_database, checksum, part, parts};
#[cfg(feature = "tool")]
pub use work::pages_of;

use crate::split::{self, Statement};
use crate::{Call, Value};
use expression::{Expression, ExpressionError, Number, Random};

/// Sections in results.
pub const TRANSACTION: &str = "transaction";
pub const STATEMENT: &str = "statement";

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The name that reports show.
    pub name: String,
    commands: Vec<Command>,
    /// The texts of the statements with numbered parameters, in the order of the script.
    pub texts: Vec<String>,
    /// The same statements as they were written.
    pub sources: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Command {
    Set {
        variable: String,
        value: Expression,
        line: usize,
    },
    /// The number of the text, and the variables of its parameters.
    Statement {
        text: usize,
        variables: Vec<String>,
        line: usize,
    },
    /// A condition; where the next branch begins.
    If {
        condition: Expression,
        otherwise: usize,
        line: usize,
    },
    /// The end of a branch: goes to the end of the whole.
    Goto(usize),
}

/// The reason why a script is none, or why a transaction has no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ScriptError {
    /// Line.
    pub line: usize,
    /// Reason.
    pub reason: String,
}

fn fault(line: usize, reason: impl ToString) -> ScriptError {
    ScriptError { line, reason: reason.to_string() }
}

/// The branches of an `\if` that is not closed.
struct Open {
    line: usize,
    /// The condition that was not taken yet.
    pending: Option<usize>,
    /// The ends of branches.
    gotos: Vec<usize>,
    has_else: bool,
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    ///
    /// If a command is not known or not supported, or a condition is not closed.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let mut script = Self {
            name: name.to_owned(),
            commands: Vec::new(),
            texts: Vec::new(),
            sources: Vec::new(),
        };
        let mut open: Vec<Open> = Vec::new();
        let mut sql = String::new();
        let mut first = 1;
        for (line, content) in (1..).zip(text.lines()) {
            let is_command = content.trim_start().starts_with('\\')
                && split::end(&sql) == split::End::Missing(false);
            if !is_command {
                if split::end(&sql) == split::End::Missing(false) {
                    sql.clear();
                    first = line;
                }
                sql += content;
                sql.push('\n');
                while let split::End::At(end) = split::end(&sql) {
                    let rest = sql.split_off(end);
                    let statement = std::mem::replace(&mut sql, rest);
                    script.statements(&statement, first);
                    first = line;
                }
                continue;
            }
            script.statements(&sql, first);
            sql.clear();
            script.command(content.trim(), line, &mut open)?;
        }
        script.statements(&sql, first);
        match open.last() {
            Some(open) => Err(fault(open.line, "\\if has no \\endif")),
            None if script.texts.is_empty() => Err(fault(1, "the script has no statement")),
            None => Ok(script),
        }
    }

    fn statements(&mut self, text: &str, first: usize) {
        for Statement { text, line } in split::statements(text) {
            self.sources.push(text.to_owned());
            let (text, variables) = split::numbered(text);
            let variables = variables.into_iter().map(str::to_owned).collect();
            self.commands.push(Command::Statement {
                text: self.texts.len(),
                variables,
                line: first + line - 1,
            });
            self.texts.push(text);
        }
    }

    fn command(
        &mut self,
        text: &str,
        line: usize,
        open: &mut Vec<Open>,
    ) -> Result<(), ScriptError> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let expression =
            |text: &str| parser::parse(text).map_err(|ExpressionError(reason)| fault(line, reason));
        let next = self.commands.len();
        match name {
            "\\set" => {
                let (variable, value) = rest
                    .trim_start()
                    .split_once(char::is_whitespace)
                    .ok_or_else(|| fault(line, "\\set needs a name and an expression"))?;
                self.commands.push(Command::Set {
                    variable: variable.to_owned(),
                    value: expression(value)?,
                    line,
                });
            }
            "\\if" => {
                open.push(Open { line, pending: Some(next), gotos: Vec::new(), has_else: false });
                self.commands.push(Command::If {
                    condition: expression(rest)?,
                    otherwise: 0,
                    line,
                });
            }
            "\\elif" | "\\else" | "\\endif" => {
                let mut current =
                    open.pop().ok_or_else(|| fault(line, format!("{name} has no \\if")))?;
                if name != "\\endif" {
                    if current.has_else {
                        return Err(fault(line, format!("{name} follows \\else")));
                    }
                    current.gotos.push(self.commands.len());
                    self.commands.push(Command::Goto(0));
                }
                let begin = self.commands.len();
                if let Some(Command::If { otherwise, .. }) =
                    current.pending.take().map(|at| &mut self.commands[at])
                {
                    *otherwise = begin;
                }
                match name {
                    "\\elif" => {
                        current.pending = Some(begin);
                        self.commands.push(Command::If {
                            condition: expression(rest)?,
                            otherwise: 0,
                            line,
                        });
                        open.push(current);
                    }
                    "\\else" => {
                        current.has_else = true;
                        open.push(current);
                    }
                    _ => {
                        for goto in current.gotos {
                            self.commands[goto] = Command::Goto(begin);
                        }
                    }
                }
            }
            "\\sleep" | "\\setshell" | "\\shell" => {
                return Err(fault(
                    line,
                    format!("{name} has no meaning in a canister; leave it out"),
                ));
            }
            "\\startpipeline" | "\\endpipeline" | "\\syncpipeline" | "\\gset" | "\\aset" => {
                return Err(fault(line, format!("{name} is not supported")));
            }
            _ => {
                return Err(fault(
                    line,
                    format!(
                        "there is no command {name}; there are \\set, \\if, \\elif, \\else, \\endif"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns the line of a statement, and the variables of its parameters.
    pub fn statement(&self, number: usize) -> Option<(usize, &[String])> {
        self.commands.iter().find_map(|command| match command {
            Command::Statement { text, variables, line } if *text == number => {
                Some((*line, variables.as_slice()))
            }
            _ => None,
        })
    }

    /// Returns the calls of a transaction with random values.
    ///
    /// # Errors
    ///
    /// If a variable has no value, or an expression cannot be computed.
    pub fn transaction(
        &self,
        defined: &[(String, Number)],
        random: &mut dyn Random,
    ) -> Result<Vec<Call>, ScriptError> {
        let mut variables: Vec<(String, Number)> = defined.to_vec();
        let mut calls = Vec::new();
        let mut at = 0;
        while let Some(command) = self.commands.get(at) {
            at += 1;
            let known = |name: &str| {
                variables
                    .iter()
                    .rev()
                    .find(|(known, _)| known == name)
                    .map(|(_, value)| value.clone())
            };
            match command {
                Command::Set { variable, value, line } => {
                    let value = value
                        .value(&known, random)
                        .map_err(|ExpressionError(reason)| fault(*line, reason))?;
                    variables.retain(|(known, _)| known != variable);
                    variables.push((variable.clone(), value));
                }
                Command::If { condition, otherwise, line } => {
                    let value = condition
                        .value(&known, random)
                        .map_err(|ExpressionError(reason)| fault(*line, reason))?;
                    if !value.is_true() {
                        at = *otherwise;
                    }
                }
                Command::Goto(to) => at = *to,
                Command::Statement { text, variables: names, line } => {
                    let value = |name: &String| {
                        known(name).map(Value::from).ok_or_else(|| fault(*line, format!("the variable :{name} has no value; set it with \\set or --define")))
                    };
                    let parameters = names.iter().map(value).collect::<Result<_, _>>()?;
                    calls.push(Call { text: *text as u32, parameters });
                }
            }
        }
        Ok(calls)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Null => Self::Null,
            Number::Boolean(value) => Self::Integer(value.into()),
            Number::Integer(number) => Self::Integer(number),
            Number::Double(number) => Self::Real(number),
            Number::Text(text) => Self::Text(text),
        }
    }
}

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
pub const BUILTINS: &[Builtin] = &[
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

impl Builtin {
    /// Returns the built-in script with a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        BUILTINS.iter().find(|builtin| builtin.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zero;

    impl Random for Zero {
        fn bits(&mut self) -> u64 {
            0
        }
    }

    fn calls(text: &str, defined: &[(&str, i64)]) -> Vec<(u32, Vec<Value>)> {
        let script = Script::parse("test", text).unwrap();
        let defined: Vec<(String, Number)> = defined
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Number::Integer(*value)))
            .collect();
        let calls = script.transaction(&defined, &mut Zero).unwrap();
        calls.into_iter().map(|call| (call.text, call.parameters)).collect()
    }

    #[test]
    fn variables_become_parameters() {
        let text = "\\set a random(5, 9)\n\\set b :a + :scale\nBEGIN;\nUPDATE t SET x = :b\n  WHERE id = :a AND y = ':a';\nEND;";
        let script = Script::parse("test", text).unwrap();
        assert_eq!(
            script.texts,
            ["BEGIN;", "UPDATE t SET x = ?1\n  WHERE id = ?2 AND y = ':a';", "END;"]
        );
        let expected = vec![Value::Integer(105), Value::Integer(5)];
        assert_eq!(calls(text, &[("scale", 100)]), [(0, vec![]), (1, expected), (2, vec![])]);
    }

    #[test]
    fn one_branch_of_a_condition_is_taken() {
        let text = "\\if :n = 1\nSELECT 1;\n\\elif :n = 2\nSELECT 2;\n\\if true\nSELECT 3;\n\\endif\n\\else\nSELECT 4;\n\\endif\nSELECT 5;";
        let texts =
            |n| calls(text, &[("n", n)]).into_iter().map(|(text, _)| text + 1).collect::<Vec<_>>();
        assert_eq!((texts(1), texts(2), texts(3)), (vec![1, 5], vec![2, 3, 5], vec![4, 5]));
    }

    #[test]
    fn faults_have_the_line() {
        for (text, line, part) in [
            ("SELECT 1;\n\\nosuch", 2, "no command \\nosuch"),
            ("\\set a", 1, "needs a name"),
            ("\\set a 1 +\nSELECT 1;", 1, "expected a value"),
            ("\n\\if true\nSELECT 1;", 2, "no \\endif"),
            ("\\endif", 1, "no \\if"),
            ("\\sleep 1", 1, "no meaning"),
            ("-- nothing", 1, "no statement"),
        ] {
            let error = Script::parse("test", text).unwrap_err();
            assert!(error.line == line && error.reason.contains(part), "{text}: {error}");
        }
        let script = Script::parse("test", "SELECT 1;\nSELECT\n:x;").unwrap();
        let error = script.transaction(&[], &mut Zero).unwrap_err();
        assert_eq!((error.line, error.reason.contains(":x has no value")), (2, true), "{error}");
    }

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
        for builtin in BUILTINS {
            for (weight, text) in builtin.scripts {
                assert!(*weight > 0);
                let script = Script::parse(builtin.name, text).unwrap();
                let scale = [("scale".to_owned(), Number::Integer(2))];
                let calls = script.transaction(&scale, &mut Counter(1)).unwrap();
                assert_eq!(calls.len(), script.texts.len(), "{}", builtin.name);
            }
            assert_eq!(Builtin::named(builtin.name), Some(builtin));
        }
    }
}
