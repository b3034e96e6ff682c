//! The cost of transactions and of their statements, from the answers to each message.

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Digest, Job, Phase, PhaseCost};
use stablebench_suite::cost::PageCosts;
use stablebench_suite::job::{Message, Observed, Observer, decode_one};
use stablebench_suite::report::number::Grouped;

use super::agreement::{Difference, Rows};
use super::pages::pages_of;
use super::transactions::{Transaction, Transactions, excerpt, is_volatile, joined};
use crate::{Answer, Answers, Call, Sql};

/// The costs of a row of a table.
#[derive(Debug, Default)]
struct Row {
    costs: Vec<u64>,
    pages: Option<PageCosts>,
    rows: u64,
    digest: Digest,
    cycles: u64,
    prepare: PhaseSum,
    step: PhaseSum,
    around: PhaseSum,
    /// The transaction with the most expensive operation.
    worst: Option<(u64, u64)>,
}

/// Instructions and times of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct PhaseSum {
    instructions: u64,
    times: u64,
}

impl PhaseSum {
    fn add(&mut self, instructions: u64) {
        self.instructions += instructions;
        self.times += u64::from(instructions > 0);
    }

    fn of(self, phase: Phase) -> Option<PhaseCost> {
        let Self { instructions, times } = self;
        (times > 0).then_some(PhaseCost { phase, instructions, times })
    }
}

/// An observer of transactions.
pub struct TransactionObserver {
    of: Transactions,
    seed: u64,
    rows: Vec<Row>,
    content: Option<Digest>,
}

impl TransactionObserver {
    /// Of the transactions that follow from a seed.
    pub fn new(of: Transactions, seed: u64) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(of.rows.count + 1, Row::default);
        Self { of, seed, rows, content: None }
    }

    /// Takes in a transaction with the answers to its calls.
    fn transaction(
        &mut self,
        number: u64,
        transaction: &Transaction,
        answers: &[Answer],
        message: &Message<'_>,
        all: u64,
    ) -> Result<()> {
        let whole = self.of.rows.scripts.get(transaction.script).copied().flatten();
        let whole = [Some(0), whole.map(|place| place + 1)];
        let mut sum = 0;
        for (call, answer) in transaction.calls.iter().zip(answers) {
            let cost = answer.prepare + answer.step + answer.around;
            let pages = pages_of(message.readings, answer);
            let cycles = u128::from(message.cycles) * u128::from(cost) / u128::from(all.max(1));
            sum += cost;
            let statement = self.of.rows.statements.get(transaction.script);
            let statement = statement.and_then(|of| of.get(call.text as usize)).copied().flatten();
            let statement = statement.map(|place| place + 1);
            for place in whole.into_iter().chain([statement]).flatten() {
                let Some(row) = self.rows.get_mut(place).filter(|_| cost > 0) else { continue };
                let first = row.prepare.times + row.step.times + row.around.times == 0;
                row.pages = match (first, row.pages, pages) {
                    (true, _, pages) => pages,
                    (false, Some(sum), Some(more)) => Some(sum + more),
                    (false, ..) => None,
                };
                row.rows += answer.digest.rows + answer.changes;
                row.cycles += cycles as u64;
                row.prepare.add(answer.prepare);
                row.step.add(answer.step);
                row.around.add(answer.around);
            }
            if let Some(row) = statement.and_then(|place| self.rows.get_mut(place)) {
                row.operation(cost, number);
                row.found(answer, number);
            }
        }
        for place in whole.into_iter().flatten() {
            if let Some(row) = self.rows.get_mut(place) {
                row.operation(sum, number);
            }
        }
        let rows = answers.iter().map(Rows::from).collect();
        self.of
            .agreement
            .transaction(&self.of.configuration, number, rows)
            .or_else(|difference| self.differs(number, transaction, answers, &difference))
    }

    /// Ends the run with a difference from another configuration.
    fn differs(
        &self,
        number: u64,
        transaction: &Transaction,
        answers: &[Answer],
        difference: &Difference,
    ) -> Result<()> {
        let Difference { first, call, rows } = difference;
        let own = answers.get(*call).map(Rows::from);
        let count = |rows: u64| match rows {
            1 => "1 row".to_owned(),
            rows => format!("{} rows", Grouped(rows)),
        };
        let shown = |rows: Option<Rows>| match rows {
            Some(Rows { found, changed: 0, .. }) => count(found),
            Some(Rows { found: 0, changed, .. }) => format!("{} changed", count(changed)),
            Some(Rows { found, changed, .. }) => {
                format!("{}, {} changed", count(found), Grouped(changed))
            }
            None => "not executed".to_owned(),
        };
        let (one, other) = (shown(*rows), shown(own));
        let values = if one == other { ", with other values" } else { "" };
        let mut reason = format!(
            "{first} and {} have other rows: {one} and {other}{values}\n{}",
            self.of.configuration,
            self.place(number, transaction, *call)
        );
        let text = transaction.calls.get(*call).and_then(|call| self.source(transaction, call));
        if text.is_some_and(is_volatile) {
            reason += "\nit depends on the time or on random numbers of SQLite; take a variable of \
                       the script instead";
        }
        bail!("{reason}")
    }

    /// Returns the text of a call as it was written.
    fn source(&self, transaction: &Transaction, call: &Call) -> Option<&str> {
        let script = self.of.scripts.script(transaction.script)?;
        script.sources.get(call.text as usize).map(String::as_str)
    }

    /// Returns the place of a call: script, line, statement and parameters.
    fn place(&self, number: u64, transaction: &Transaction, call: usize) -> String {
        let scripts = &self.of.scripts;
        let name = scripts.script(transaction.script).map_or("", |script| script.name.as_str());
        let mut place = format!("{name}, transaction {}", Grouped(number + 1));
        let Some(call) = transaction.calls.get(call) else { return place };
        let script = scripts.script(transaction.script);
        if let Some((line, _)) = script.and_then(|script| script.statement(call.text as usize)) {
            place = format!("{name}, line {line}, transaction {}", Grouped(number + 1));
        }
        let variables = scripts.variables(transaction.script, std::slice::from_ref(call));
        if !variables.is_empty() {
            place += &format!(", {variables}");
        }
        let text = self.source(transaction, call).unwrap_or_default();
        place + &format!("\n  {}", excerpt(&joined(text), 200))
    }
}

impl Row {
    fn operation(&mut self, cost: u64, number: u64) {
        self.costs.push(cost);
        // The first of the most expensive ones.
        if self.worst.is_none_or(|(worst, _)| cost > worst) {
            self.worst = Some((cost, number));
        }
    }

    /// Adds the rows of a call to the digest, which depends on their order from call to call.
    fn found(&mut self, answer: &Answer, number: u64) {
        let Digest { rows, low, high } = &mut self.digest;
        *rows += answer.digest.rows + answer.changes;
        let step = |hash: u64, value: u64| {
            (hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        *low = step(step(*low, number), answer.digest.low);
        *high = step(step(*high, answer.digest.high), answer.changes);
    }
}

impl Observer for TransactionObserver {
    fn kept(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn message(&mut self, message: Message<'_>) -> Result<()> {
        let mut answers: Vec<Answer> = Vec::new();
        for bytes in message.kept {
            let Answers { answers: part } = decode_one(bytes)?;
            answers.extend(part);
        }
        let all = answers.iter().map(|answer| answer.prepare + answer.step + answer.around).sum();
        let mut rest = answers.as_slice();
        for number in message.from..message.from + message.count {
            let transaction = self.of.scripts.transaction(self.seed, number)?;
            let calls = transaction.calls.len().min(rest.len());
            let (own, others) = rest.split_at(calls);
            rest = others;
            if let Some(at) = own.iter().position(|answer| answer.error.is_some()) {
                let failure = own[at].error.as_ref().context("the statement failed")?;
                bail!(
                    "{}: {}\n{}",
                    self.of.configuration,
                    failure.message,
                    self.place(number, &transaction, at)
                );
            }
            if calls < transaction.calls.len() {
                bail!("the canister answered {calls} of {} calls", transaction.calls.len());
            }
            self.transaction(number, &transaction, own, &message, all)?;
        }
        Ok(())
    }

    fn reads_content(&self) -> bool {
        true
    }

    fn content(&mut self, content: Digest) -> Result<()> {
        let other = self.of.agreement.content(&self.of.configuration, content);
        if self.of.is_volatile {
            // It may differ by itself.
            return Ok(());
        }
        if let Some((other, rows)) = other {
            bail!(
                "{other} and {} have other rows in their tables after all transactions: {} and {}",
                self.of.configuration,
                Grouped(rows),
                Grouped(content.rows)
            );
        }
        self.content = Some(content);
        Ok(())
    }

    fn rows(self: Box<Self>) -> Result<Vec<Observed>> {
        let Self { of, seed, rows, content } = *self;
        let mut observed = Vec::new();
        for (place, row) in rows.into_iter().enumerate() {
            let worst = row.worst.map(|(_, number)| -> Result<String> {
                let transaction = of.scripts.transaction(seed, number)?;
                let calls: Vec<Call> = match statement_of(&of, place) {
                    Some((_, text)) => {
                        let own = |call: &&Call| call.text as usize == text;
                        transaction.calls.iter().filter(own).cloned().collect()
                    }
                    None => transaction.calls,
                };
                let mut words = format!("transaction {}", Grouped(number + 1));
                let script = of.scripts.script(transaction.script);
                if let Some(script) = script.filter(|_| of.scripts.scripts.len() > 1 && place == 0)
                {
                    words += &format!(" of {}", script.name);
                }
                let variables = of.scripts.variables(transaction.script, &calls);
                if !variables.is_empty() {
                    words += &format!(", {variables}");
                }
                Ok(words)
            });
            let phases = [
                row.prepare.of(Phase::Prepare),
                row.step.of(Phase::Step),
                row.around.of(Phase::Rest),
            ];
            let of_statement = statement_of(&of, place).is_some();
            observed.push(Observed {
                costs: row.costs,
                pages: row.pages,
                rows: row.rows,
                digest: match (place, of_statement) {
                    (0, _) => content,
                    (_, true) => Some(row.digest),
                    (_, false) => None,
                },
                cycles: row.cycles,
                phases: phases.into_iter().flatten().collect(),
                worst: worst.transpose()?,
            });
        }
        Ok(observed)
    }
}

/// Returns the script and the statement of a row.
fn statement_of(of: &Transactions, place: usize) -> Option<(usize, usize)> {
    let wanted = Some(place.checked_sub(1)?);
    of.rows.statements.iter().enumerate().find_map(|(script, statements)| {
        let statement = statements.iter().position(|known| *known == wanted)?;
        Some((script, statement))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Script;
    use super::super::transactions::{Layout, Scripts};
    use super::*;
    use crate::Failure;

    const TEXT: &str = "\\set a random(1, 1000)\nSELECT :a;\nUPDATE t SET x = :a;";

    fn observer(
        agreement: &Arc<super::super::agreement::Agreement>,
        of: &str,
    ) -> TransactionObserver {
        let script = Script::parse("tx.sql", TEXT).unwrap();
        let of = Transactions {
            scripts: Arc::new(Scripts { scripts: vec![(1, script)], defined: Vec::new() }),
            agreement: Arc::clone(agreement),
            configuration: of.to_owned(),
            rows: Arc::new(Layout {
                scripts: vec![None],
                statements: vec![vec![Some(0), Some(1)]],
                count: 2,
            }),
            is_volatile: false,
        };
        TransactionObserver::new(of, 1)
    }

    fn answer(call: u32, cost: u64, rows: u64) -> Answer {
        Answer {
            call,
            prepare: 10,
            step: cost,
            digest: Digest { rows, low: rows, high: 1 },
            ..Answer::default()
        }
    }

    fn send(observer: &mut TransactionObserver, from: u64, mut answers: Vec<Answer>) -> Result<()> {
        // A reading costs nothing, and each statement touches pages.
        let mut readings = vec![(0, PageCosts::default()); 2];
        for (number, answer) in (1..).zip(&mut answers) {
            let pages = |number| PageCosts { heap: 2 * number, stable: 3 * number, touched: None };
            let begin = 1_000 * number;
            let prepared = begin + answer.prepare;
            answer.readings = (begin, prepared + answer.step);
            readings.extend([begin, prepared, prepared].map(|used| (used, pages(number))));
            readings.push((answer.readings.1, pages(number + 1)));
        }
        let kept = [candid::encode_one(Answers { answers }).unwrap()];
        observer.message(Message {
            from,
            count: 1,
            kept: &kept,
            readings: &readings,
            cycles: 1_000,
        })
    }

    #[test]
    fn costs_are_those_of_transactions_and_statements() {
        let agreement = Arc::default();
        let mut observer = observer(&agreement, "sqlite");
        send(&mut observer, 0, vec![answer(0, 40, 1), answer(1, 140, 0)]).unwrap();
        send(&mut observer, 1, vec![answer(0, 90, 1), answer(1, 190, 0)]).unwrap();
        let rows = Box::new(observer).rows().unwrap();
        let costs: Vec<&[u64]> = rows.iter().map(|row| row.costs.as_slice()).collect();
        assert_eq!(costs, [&[200, 300][..], &[50, 100], &[150, 200]]);
        assert_eq!(rows[0].pages, Some(PageCosts { heap: 8, stable: 12, touched: None }));
        assert_eq!(rows[1].pages, Some(PageCosts { heap: 4, stable: 6, touched: None }));
        assert_eq!(rows.iter().map(|row| row.rows).collect::<Vec<_>>(), [2, 2, 0]);
        // 1 000 × 50 / 200 + 1 000 × 100 / 300, and the rest.
        assert_eq!((rows[1].cycles, rows[2].cycles), (583, 1_416));
        let worst = rows[0].worst.clone().unwrap();
        assert!(worst.starts_with("transaction 2, :a = "), "{worst}");
        assert_eq!(rows[0].phases.len(), 2);
        assert_eq!(rows[0].phases[0].instructions, 40);
    }

    #[test]
    fn the_first_difference_is_shown_with_its_parameters() {
        let agreement = Arc::default();
        let mut first = observer(&agreement, "sqlite/persist");
        let mut other = observer(&agreement, "sqlite-vfs");
        send(&mut first, 0, vec![answer(0, 1, 3), answer(1, 1, 0)]).unwrap();
        let error = send(&mut other, 0, vec![answer(0, 1, 4), answer(1, 1, 0)]).unwrap_err();
        let error = error.to_string();
        let begin = "sqlite/persist and sqlite-vfs have other rows: 3 rows and 4 rows\n\
                     tx.sql, line 2, transaction 1, :a = ";
        assert!(error.starts_with(begin) && error.ends_with("\n  SELECT :a;"), "{error}");
    }

    #[test]
    fn an_error_has_file_line_and_statement() {
        let agreement = Arc::default();
        let mut observer = observer(&agreement, "sqlite");
        let failure = Failure { message: "no such table: t".to_owned(), ..Failure::default() };
        let failed = Answer { error: Some(failure), ..answer(1, 1, 0) };
        let error = send(&mut observer, 0, vec![answer(0, 1, 1), failed]).unwrap_err().to_string();
        let begin = "sqlite: no such table: t\ntx.sql, line 3, transaction 1, :a = ";
        assert!(error.starts_with(begin) && error.ends_with("\n  UPDATE t SET x = :a;"), "{error}");
    }

    #[test]
    fn the_order_of_rows_between_transactions_matters() {
        let digest = |rows: [u64; 2]| {
            let agreement = Arc::default();
            let mut observer = observer(&agreement, "sqlite");
            for (number, rows) in (0..).zip(rows) {
                send(&mut observer, number, vec![answer(0, 1, rows), answer(1, 1, 0)]).unwrap();
            }
            Box::new(observer).rows().unwrap()[1].digest
        };
        assert_ne!(digest([1, 2]), digest([2, 1]));
        assert_eq!(digest([1, 2]), digest([1, 2]));
    }

    #[test]
    fn the_time_and_random_numbers_are_volatile() {
        for text in
            ["INSERT INTO t VALUES (CURRENT_TIMESTAMP)", "select random()", "select date('now')"]
        {
            assert!(is_volatile(text), "{text}");
        }
        assert!(!is_volatile("SELECT 'random', \"random\", randomly FROM t -- random"));
    }
}
