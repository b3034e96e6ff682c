//! Transactions as the work of a step.

use std::collections::HashMap;

use anyhow::Result;
use stablebench_protocol::{Job, Part};
use stablebench_suite::job::{Chosen, Observer, Work};

use super::observer::TransactionObserver;
use super::transactions::Transactions;
use crate::{Call, Sql, Statements};

impl Work for Transactions {
    fn choose(&self, operations: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        Ok(Box::new(ChosenTransactions { of: self.clone(), operations, seed }))
    }
}

struct ChosenTransactions {
    of: Transactions,
    operations: u64,
    seed: u64,
}

impl Chosen for ChosenTransactions {
    fn part(&self, from: u64, count: u64, each: bool) -> Part {
        let mut statements = Statements::default();
        // The place of each text in this message: equal ones are prepared once.
        let mut places: HashMap<&str, u32> = HashMap::new();
        for number in from..from + count {
            // The plan has computed all transactions, so that none fails here.
            let Ok(transaction) = self.of.scripts.transaction(self.seed, number) else { continue };
            let Some(script) = self.of.scripts.script(transaction.script) else { continue };
            for call in transaction.calls {
                let text = script.texts.get(call.text as usize).map_or("", String::as_str);
                let place = *places.entry(text).or_insert_with(|| {
                    statements.texts.push(text.to_owned());
                    statements.texts.len() as u32 - 1
                });
                statements.calls.push(Call { text: place, ..call });
            }
        }
        let job = Job::new(&Sql::Statements(statements));
        Part { job, seed: self.seed, from, count, each }
    }

    fn whole(&self) -> Part {
        self.part(0, self.operations, false)
    }

    fn tables(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn observer(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(TransactionObserver::new(self.of.clone(), self.seed)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::script::Script;
    use crate::script::transactions::Scripts;

    #[test]
    fn a_message_has_each_text_once() {
        let script = Script::parse("s", "SELECT 1;\nSELECT 2;\nSELECT 1;").unwrap();
        let scripts = Scripts { scripts: vec![(1, script)], defined: Vec::new() };
        let of = Transactions {
            scripts: Arc::new(scripts),
            agreement: Arc::default(),
            configuration: "sqlite".to_owned(),
            rows: Arc::default(),
            is_volatile: false,
        };
        let part = of.choose(10, 1).unwrap().part(3, 4, false);
        let Sql::Statements(statements) = part.job.decode().unwrap() else { panic!() };
        assert_eq!(statements.texts, ["SELECT 1;", "SELECT 2;"]);
        let texts: Vec<u32> = statements.calls.iter().map(|call| call.text).collect();
        assert_eq!(texts, [0, 1, 0].repeat(4));
    }
}
