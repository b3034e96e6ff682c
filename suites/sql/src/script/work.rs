//! Transactions as the work of a step: their messages, and from the answers to each message the cost of
//! transactions and of their statements, with the pages that a statement touched.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Digest, Job, JobPart, Phase, PhaseCost};
use stablebench_suite::cost::PageCosts;
use stablebench_suite::job::{Chosen, Message, Observed, Observer, Work, decode_one};
use stablebench_suite::report::number::Grouped;

use super::transactions::{
    Difference, Rows, Transaction, Transactions, excerpt, is_volatile, joined,
};
use crate::{Answer, Answers, Call, Sql, Statements};

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
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart {
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
        JobPart { job, seed: self.seed, from, count, each }
    }

    fn whole(&self) -> JobPart {
        self.part(0, self.operations, false)
    }

    fn tables(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn observer(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(TransactionObserver::new(self.of.clone(), self.seed)))
    }
}

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
struct TransactionObserver {
    of: Transactions,
    seed: u64,
    rows: Vec<Row>,
    content: Option<Digest>,
}

impl TransactionObserver {
    /// Of the transactions that follow from a seed.
    fn new(of: Transactions, seed: u64) -> Self {
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

/// Returns the cost of the pages that a statement touched, without those of the copies of its rows, from
/// all readings of a message, each with the cost of pages up to it. It is a part of the statement's
/// instructions. `None` if the replica knows none.
///
/// ```text
///   ├─ opening ─┤ ├─ prepare ─┤ ├─ step ─┤ row ├─ step ─┤ row … ├─ step ─┤ ├─ ending ─┤
///    the first      unless it                                               the last
///    of a group     was prepared                                            of a group
/// ```
///
/// The sum of the intervals is the number of the statement's instructions, and so tells which of those
/// are between its first and its last reading.
pub fn pages_of(readings: &[(u64, PageCosts)], answer: &Answer) -> Option<PageCosts> {
    let place = |used: u64| readings.binary_search_by_key(&used, |(used, _)| *used).ok();
    let own = readings.get(place(answer.readings.0)?..=place(answer.readings.1)?)?;
    // The first two readings of a message tell what a reading costs.
    let reading = readings.get(1)?.0 - readings.first()?.0;
    let instructions = answer.prepare + answer.step + answer.around;
    (0..16).map(|bits| [1, 2, 4, 8].map(|bit| bits & bit != 0)).find_map(|parts| {
        let starts = starts(own.len(), parts)?;
        let pairs = || starts.iter().filter_map(|at| Some((own.get(*at)?, own.get(*at + 1)?)));
        let spent: u64 = pairs().map(|(from, to)| (to.0 - from.0).saturating_sub(reading)).sum();
        let pages = || pairs().map(|(from, to)| to.1 - from.1).reduce(|one, other| one + other);
        (spent == instructions).then(pages).flatten()
    })
}

/// Returns the numbers of the readings with which intervals begin, if so many readings can be these
/// parts.
fn starts(readings: usize, [opens, prepares, steps, ends]: [bool; 4]) -> Option<Vec<usize>> {
    let end = readings.checked_sub(if ends { 2 } else { 0 })?;
    let mut starts: Vec<usize> = opens.then_some(0).into_iter().collect();
    let mut at = if opens { 2 } else { 0 };
    if prepares {
        starts.push(at);
        at += if steps { 1 } else { 2 };
    }
    if steps {
        // The reading at which the statement begins.
        at += 1;
        if at >= end || !(end - at).is_multiple_of(2) {
            return None;
        }
        starts.extend((at..end).step_by(2));
        at = end;
    }
    starts.extend(ends.then_some(end));
    (at == end).then_some(starts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Script;
    use super::super::transactions::{Agreement, Layout, Scripts};
    use super::*;
    use crate::Failure;

    const TEXT: &str = "\\set a random(1, 1000)\nSELECT :a;\nUPDATE t SET x = :a;";

    fn observer(agreement: &Arc<Agreement>, of: &str) -> TransactionObserver {
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

    /// Readings at these instructions; each interval touches a page of the heap.
    fn readings(used: &[u64]) -> Vec<(u64, PageCosts)> {
        let page = |heap: usize| PageCosts { heap: heap as u64, stable: 0, touched: None };
        used.iter().enumerate().map(|(at, used)| (*used, page(at))).collect()
    }

    fn heap(used: &[u64], answer: &Answer) -> Option<u64> {
        pages_of(&readings(used), answer).map(|pages| pages.heap)
    }

    #[test]
    fn copies_of_rows_are_left_out() {
        // A reading costs 1. The library opens in 20, two rows and the end take 10 each, the copies 100.
        let used = [0, 1, 10, 31, 40, 46, 50, 61, 161, 172, 272, 283, 300, 331];
        let answer = Answer { prepare: 5, step: 30, readings: (40, 283), ..Answer::default() };
        assert_eq!(heap(&used, &answer), Some(4));
        let first = Answer { around: 20, readings: (10, 283), ..answer.clone() };
        assert_eq!(heap(&used, &first), Some(5));
        let only = Answer { around: 50, readings: (10, 331), ..answer.clone() };
        assert_eq!(heap(&used, &only), Some(6));
        let again = Answer { prepare: 0, readings: (46, 283), ..answer };
        assert_eq!(heap(&used, &again), Some(3));
    }

    #[test]
    fn the_transactions_of_a_library_have_pages() {
        let used = [0, 1, 10, 31, 40, 71];
        let of = |around, readings| Answer { around, readings, ..Answer::default() };
        assert_eq!(heap(&used, &of(20, (10, 31))), Some(1), "BEGIN");
        assert_eq!(heap(&used, &of(30, (40, 71))), Some(1), "COMMIT");
        assert_eq!(heap(&used, &of(50, (10, 71))), Some(2), "both");
    }

    #[test]
    fn pages_are_unknown_without_readings() {
        let answer = Answer { step: 10, readings: (10, 21), ..Answer::default() };
        assert_eq!(heap(&[], &answer), None);
        assert_eq!(heap(&[0, 1, 10, 25], &answer), None);
    }
}
