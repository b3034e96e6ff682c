//! What a measured message holds beside the work.

use super::canister::{Bench, CONTROLLER, Which};
use super::jobs::create;
use candid::{decode_one, encode_args};
use stablebench_protocol::{
    Engine, Error, Operation, Part, Performed, Result, Selection, Work, Worked,
};
use stablebench_replica::Execution;

/// Instructions of a message without work. What it must cost: five calls of
/// `performance_counter` at 200 each, `is_controller`, and the argument, the caller and the
/// reply copied, 500 to 1 000 a call. The rest is Rust, of which 20 000 instructions are enough.
const EMPTY: u64 = 20_000;

/// Instructions for each row beside the work: the id is read where it lies.
const A_ROW: u64 = 20;

fn work(engine: Engine, operation: Operation) -> Work {
    Work { engine, operation, transaction: None, each: false }
}

/// Stages work and sends the measured message.
fn run(bench: &mut Bench, work: &Work) -> (Worked, Execution) {
    bench.do_it("stage_work", (work,));
    send(bench)
}

fn send(bench: &mut Bench) -> (Worked, Execution) {
    let id = bench.0.version() + 1;
    let (worked, execution) = bench.execute(CONTROLLER, "run", (id,));
    (worked.unwrap_or_else(|error| panic!("run: {error}")), execution)
}

/// Instructions of the message beside the work.
fn beside((worked, execution): &(Worked, Execution)) -> u64 {
    execution.instructions.get() - worked.measurement.instructions
}

#[test]
fn a_message_without_work_is_cheap() {
    for which in Which::ALL {
        let mut bench = Bench::of(which);
        send(&mut bench);
        let (worked, execution) = send(&mut bench);
        assert_eq!(worked.measurement.rows, 0, "{which:?}");
        let whole = execution.instructions.get();
        assert!(whole < EMPTY, "{which:?}: {whole}");
    }
}

#[test]
fn a_message_costs_what_its_work_costs() {
    for engine in Engine::ALL {
        let filled = Bench::filled(&[engine], 1_000);
        let mut empty = filled.fork();
        send(&mut empty);
        let empty = beside(&send(&mut empty));
        for rows in [1, 100] {
            let ids = (0..rows).map(|row| row * 70 % 9_990 / 10 * 10 + 5).collect();
            for rows_of in [Selection::Step { first: 10_000, step: 10, rows }, Selection::List(ids)]
            {
                let mut bench = filled.fork();
                let insert = work(engine, Operation::Insert(rows_of));
                let run = run(&mut bench, &insert);
                assert_eq!(run.0.measurement.rows, rows);
                // The engine is chosen, the text is there, transactions are counted.
                let most = empty + 5_000 + A_ROW * rows;
                let beside = beside(&run);
                assert!(beside <= most, "{engine}, {rows} rows: {beside}, not {most}");
            }
        }
    }
}

/// Staged or not, the work is the same, and so is what it leaves.
#[test]
fn staged_work_is_the_work() {
    for engine in Engine::ALL {
        let filled = Bench::filled(&[engine], 1_000);
        let insert = work(engine, Operation::Insert(Selection::List(vec![9_995, 5, 10_000])));
        let (mut staged, mut at_once) = (filled.fork(), filled.fork());
        let (run, _) = run(&mut staged, &insert);
        let worked = at_once.work(&insert);
        let written = |worked: &Worked| (worked.measurement.rows, worked.measurement.bytes);
        assert_eq!(written(&run), written(&worked), "{engine}");
        assert_eq!(staged.digest(engine, 10_000), at_once.digest(engine, 10_000), "{engine}");
    }
}

#[test]
fn staged_work_is_done_once() {
    let mut bench = Bench::filled(&[Engine::Btree], 100);
    let insert =
        work(Engine::Btree, Operation::Insert(Selection::Step { first: 7, step: 10, rows: 3 }));
    bench.do_it("stage_work", (&insert,));
    let run = |bench: &mut Bench, id: u64| {
        let worked: Result<Worked> = bench.update("run", (id,));
        worked.map(|worked| worked.measurement.rows)
    };
    assert_eq!(run(&mut bench, 5), Ok(3));
    let before = bench.contents();
    assert_eq!(run(&mut bench, 5), Err(Error::Repeated { last: 5 }));
    assert_eq!(run(&mut bench, 6), Ok(0), "nothing is staged any more");
    assert_eq!(bench.contents(), before);
    // An upgrade forgets what was staged.
    bench.do_it("stage_work", (&insert,));
    bench.upgrade();
    assert_eq!(run(&mut bench, 1), Ok(0));
    assert_eq!(bench.digest(Engine::Btree, 1_000).rows, 103);
}

#[test]
fn what_writes_is_not_run_in_a_query() {
    let mut bench = Bench::filled(&[Engine::Btree], 100);
    let rows = || Selection::List(vec![10, 7]);
    for (operation, found) in [
        (Operation::Read(rows()), Ok(1)),
        (Operation::Overwrite(rows()), Err(Error::WritesInQuery)),
    ] {
        bench.do_it("stage_work", (work(Engine::Btree, operation),));
        let worked: Result<Worked> = bench.query("run_query", ());
        assert_eq!(worked.map(|worked| worked.measurement.rows), found);
    }
}

#[test]
fn a_staged_part_is_the_part() {
    let mut staged = Bench::new();
    let mut at_once = staged.fork();
    staged.do_it("stage_part", (create(),));
    let (run, _) = send(&mut staged);
    let performed: Performed = at_once.update("perform", (create(),)).unwrap();
    assert_eq!(run.measurement.rows, performed.measurement.rows);
    let none = Part { count: 0, ..create() };
    assert_eq!(staged.update::<()>("stage_part", (none,)), Err(Error::NoRows));
}

/// The argument is read by hand: what is no id is refused before anything is done.
#[test]
fn another_argument_traps() {
    let mut bench = Bench::new();
    for argument in [encode_args(()), encode_args((7_u32,)), encode_args((7_u64, 8_u64))] {
        let execution = bench.0.update(CONTROLLER, "run", &argument.unwrap()).unwrap();
        let reject = execution.outcome.unwrap_err();
        assert!(reject.message.contains("run takes the id"), "{reject}");
    }
    let execution = bench.0.update(CONTROLLER, "run", &encode_args((7_u64,)).unwrap()).unwrap();
    decode_one::<Result<Worked>>(&execution.outcome.unwrap()).unwrap().unwrap();
}
