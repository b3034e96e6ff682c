//! Scripts of pgbench: a transaction with variables, random numbers and conditions.
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

#![allow(
    missing_docs,
    reason = "the names are those of pgbench's language, and the help describes the options"
)]

#[cfg(feature = "tool")]
mod agreement;
pub mod builtin;
pub mod expression;
#[cfg(feature = "tool")]
mod observer;
#[cfg(feature = "tool")]
mod pages;
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
pub use pages::pages_of;
#[cfg(feature = "tool")]
pub use plan::{FILES, SqlSuite};
#[cfg(feature = "tool")]
pub use setup::{MAGIC, check_database, checksum, part, parts};

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
}
