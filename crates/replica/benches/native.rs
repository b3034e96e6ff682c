//! Question: how much longer than native code does a canister take, and why?
//!
//! The same Rust code runs natively and as a canister. Between the two is a ladder, of which each rung adds
//! one thing. A round goes once up the ladder, so that all rungs meet the same state of the machine. Times
//! are those of the processor, and the fastest of all rounds counts: what else the machine does only adds
//! to them.
//!
//! ```text
//!   native         map: `VectorMemory`, SQLite: the library in rusqlite on its VFS in memory
//!   wasm           the module as it is; stable memory is a plain second memory
//!   stable memory  its calls check, mark pages and count themselves; pages are files, copied when written
//!   charges        each run of operators is charged: rules of 2025-10
//!   page tracking  heap pages fault when first touched: rules of today, whose code is not the same
//!   commit         pages are compared and kept; so far, they were dropped
//! ```
//!
//! Before the last rung, the method traps at its end. Both sides insert into an empty map or table in one
//! message, and SQLite in one transaction. Both libraries of SQLite are compiled from C with
//! optimisations, but not from the same version.
//!
//! ```text
//!   cargo bench -p stablebench-replica --bench native -- [ROUNDS]
//! ```

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]
#![allow(clippy::print_stdout, reason = "benchmarks print what they measure")]
#![allow(clippy::disallowed_methods, reason = "benchmarks measure time")]

mod support;

use std::convert::Infallible;
use std::io::Read;

use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{BTreeMap, DefaultMemoryImpl};
use rusqlite::{Connection, OpenFlags};
use stablebench_replica::{Canister, Principal, Replica, Rules};
use support::{install_on, on_a_large_stack, users};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, ExportSection, Function, FunctionSection, ImportSection,
    InstructionSink, MemArg, MemorySection, MemoryType,
};
use wasmtime::{Caller, Config, Engine, Extern, Instance, Linker, Module, Store};

fn main() {
    on_a_large_stack(|| {
        let rounds = std::env::args().find_map(|it| it.parse().ok()).unwrap_or(ROUNDS).max(1);
        let plain = Plain::new(users::uploaded());
        for work in [&MAP, &SQLITE] {
            climb(&plain, work, rounds);
        }
    });
}

/// Rounds, unless the command line contains another number.
const ROUNDS: usize = 11;
/// Rows that are inserted.
const ROWS: u64 = 100_000;
const RUNGS: [&str; 6] = ["native", "wasm", "stable memory", "charges", "page tracking", "commit"];

/// A workload that runs natively and in a canister.
struct Workload {
    name: &'static str,
    /// Inserts rows; returns the seconds that the inserts take.
    native: fn() -> f64,
    prepare: fn(&mut Canister),
    prepare_plain: fn(&mut Running),
    method: &'static str,
}

const MAP: Workload = Workload {
    name: "StableBTreeMap",
    native: native_map,
    prepare: |_| {},
    prepare_plain: |_| {},
    method: "add_users_btree",
};

const SQLITE: Workload = Workload {
    name: "SQLite",
    native: native_sqlite,
    prepare: users::create_table,
    prepare_plain: |running| running.call("canister_update create_tables", users::JOURNAL),
    method: "add_users_sqlite",
};

fn climb(plain: &Plain, work: &Workload, rounds: usize) {
    let canister = |rules: Rules, form: Form, metered: bool| {
        let replica = Replica::new(rules, None).unwrap();
        let uploaded = form.of(users::uploaded());
        let compile = if metered { Replica::compile } else { Replica::compile_unmetered };
        let mut canister = install_on(&replica, &compile(&replica, &uploaded).unwrap());
        (work.prepare)(&mut canister);
        (canister, form)
    };
    let (charges, today) = (Rules::of_2025_10(), Rules::today());
    let canisters = [
        canister(charges, Form::Dropping, false),
        canister(charges, Form::Dropping, true),
        canister(today, Form::Dropping, true),
        canister(today, Form::Committing, true),
    ];
    let argument = users::rows(0, ROWS);
    let mut best = [f64::INFINITY; RUNGS.len()];
    for _ in 0..rounds {
        let mut times = vec![(work.native)()];
        let mut running = plain.instantiate();
        (work.prepare_plain)(&mut running);
        let method = format!("canister_update {}", work.method);
        times.push(seconds(|| running.call(&method, &argument)));
        for (canister, form) in &canisters {
            let mut fork = canister.fork();
            times.push(seconds(|| {
                let execution = fork.update(Principal::anonymous(), work.method, &argument);
                assert_eq!(execution.unwrap().outcome.is_ok(), *form == Form::Committing);
            }));
        }
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    println!("{}, {ROWS} inserts, fastest of {rounds} rounds", work.name);
    for (name, time) in RUNGS.iter().zip(best) {
        let ratio = time / best[0];
        println!("  {name:<14} {time:.3} s {ratio:5.2} × {}", "█".repeat((ratio * 20.0) as usize));
    }
}

/// The time that this thread has executed code in `run`, and the kernel for it.
fn seconds(run: impl FnOnce()) -> f64 {
    let began = executed();
    run();
    executed() - began
}

fn executed() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the pointer is that of a value which only this function has.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn payload() -> String {
    "a".repeat(100)
}

fn native_map() -> f64 {
    let manager = MemoryManager::init(DefaultMemoryImpl::default());
    let mut map: BTreeMap<u64, String, VirtualMemory<DefaultMemoryImpl>> =
        BTreeMap::init(manager.get(MemoryId::new(0)));
    let payload = payload();
    seconds(|| {
        for row in 0..ROWS {
            map.insert(row * 10, payload.clone());
        }
    })
}

/// The statements of the canister, with the settings of `ic-rusqlite`.
fn native_sqlite() -> f64 {
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags("file:/users?vfs=memdb", flags).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=memory; PRAGMA synchronous=off; PRAGMA locking_mode=exclusive;
             PRAGMA temp_store=memory; PRAGMA cache_size=500000;
             CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL)",
        )
        .unwrap();
    let payload = payload();
    seconds(|| {
        let transaction = connection.transaction().unwrap();
        let insert = "insert into users (id, username) values (?, ?);";
        let mut statement = transaction.prepare(insert).unwrap();
        for row in 0..ROWS {
            statement.execute(((row * 10) as i64, &payload)).unwrap();
        }
        drop(statement);
        transaction.commit().unwrap();
    })
}

/// A form of the canister's module.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Stable memory is a second memory of the module.
    Plain,
    /// The methods trap at their end, so that their changes are dropped.
    Dropping,
    /// As it was uploaded.
    Committing,
}

impl Form {
    /// Returns a module in this form.
    fn of(self, uploaded: &[u8]) -> Vec<u8> {
        let mut wasm = Vec::new();
        flate2::read::GzDecoder::new(uploaded).read_to_end(&mut wasm).unwrap();
        let mut module = wasm_encoder::Module::new();
        let mut recoder =
            Recoder { form: self, calls: Vec::new(), functions: 0, trapping: Vec::new() };
        recoder.parse_core_module(&mut module, wasmparser::Parser::new(0), &wasm).unwrap();
        module.finish()
    }
}

/// Imports of the canister's module.
const IMPORTS: u32 = 12;

struct Recoder {
    form: Form,
    /// Names and types of the calls of stable memory, which are the first imports.
    calls: Vec<(String, u32)>,
    /// Number of the module's functions, without imports.
    functions: u32,
    /// Those that trap at their end.
    trapping: Vec<u32>,
}

type Recoded = Result<(), reencode::Error<Infallible>>;

impl Reencode for Recoder {
    type Error = Infallible;

    /// Functions for the calls come after all others.
    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error<Infallible>> {
        let calls = self.calls.len() as u32;
        Ok(if function < calls {
            IMPORTS - calls + self.functions + function
        } else {
            function - calls
        })
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Recoded {
        for import in section.into_imports() {
            let import = import?;
            match import.ty {
                wasmparser::TypeRef::Func(ty)
                    if self.form == Form::Plain && import.name.starts_with("stable64_") =>
                {
                    self.calls.push((import.name.to_owned(), ty));
                }
                ty => {
                    imports.import(import.module, import.name, self.entity_type(ty)?);
                }
            }
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Recoded {
        self.functions = section.count();
        utils::parse_function_section(self, functions, section)?;
        for (_, ty) in &self.calls {
            functions.function(*ty);
        }
        Ok(())
    }

    fn parse_memory_section(
        &mut self,
        memories: &mut MemorySection,
        section: wasmparser::MemorySectionReader<'_>,
    ) -> Recoded {
        utils::parse_memory_section(self, memories, section)?;
        if self.form == Form::Plain {
            memories.memory(MemoryType {
                minimum: 0,
                maximum: None,
                memory64: true,
                shared: false,
                page_size_log2: None,
            });
        }
        Ok(())
    }

    fn parse_export(
        &mut self,
        exports: &mut ExportSection,
        export: wasmparser::Export<'_>,
    ) -> Recoded {
        if export.name.starts_with("canister_update add") && self.form == Form::Dropping {
            self.trapping.push(export.index - IMPORTS);
        }
        utils::parse_export(self, exports, export)
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: wasmparser::FunctionBody<'_>,
    ) -> Recoded {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let operator = self.parse_instruction(&mut reader)?;
            if reader.eof() && self.trapping.contains(&code.len()) {
                function.instructions().unreachable();
            }
            function.instruction(&operator);
        }
        code.function(&function);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Recoded {
        utils::parse_code_section(self, code, section)?;
        for (name, _) in &self.calls {
            code.function(&plain_call(name));
        }
        Ok(())
    }
}

/// A call of stable memory without checks. As compilers of native code do it, short copies are made of
/// words.
fn plain_call(name: &str) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    let memory = |memory_index| MemArg { offset: 0, align: 0, memory_index };
    let (to, from, size) = (0, 1, 2);
    match name {
        "stable64_size" => {
            code.memory_size(1);
        }
        "stable64_grow" => {
            code.local_get(0).memory_grow(1);
        }
        _ => {
            let (target, source) = if name == "stable64_read" { (0, 1) } else { (1, 0) };
            let address = |code: &mut InstructionSink<'_>, local, memory| {
                code.local_get(local);
                if memory == 0 {
                    code.i32_wrap_i64();
                }
            };
            let addresses = |code: &mut InstructionSink<'_>| {
                address(code, to, target);
                address(code, from, source);
            };
            code.local_get(size).i64_const(128).i64_gt_u().if_(BlockType::Empty);
            addresses(&mut code);
            code.local_get(size).i32_wrap_i64().memory_copy(target, source).return_().end();
            for width in [8, 4, 2, 1] {
                code.block(BlockType::Empty).loop_(BlockType::Empty);
                code.local_get(size).i64_const(width).i64_lt_u().br_if(1);
                addresses(&mut code);
                let (load, store) = (memory(source), memory(target));
                match width {
                    8 => code.i64_load(load).i64_store(store),
                    4 => code.i64_load32_u(load).i64_store32(store),
                    2 => code.i64_load16_u(load).i64_store16(store),
                    _ => code.i64_load8_u(load).i64_store8(store),
                };
                for local in [to, from] {
                    code.local_get(local).i64_const(width).i64_add().local_set(local);
                }
                code.local_get(size).i64_const(width).i64_sub().local_set(size).br(0).end().end();
            }
        }
    }
    code.end();
    function
}

/// The canister's module on the engine alone.
struct Plain {
    module: Module,
    linker: Linker<Vec<u8>>,
}

impl Plain {
    fn new(uploaded: &[u8]) -> Self {
        let mut config = Config::new();
        config
            .cranelift_nan_canonicalization(true)
            .max_wasm_stack(8 << 20)
            .async_stack_size(16 << 20)
            .memory_guard_size(32 << 20);
        let engine = Engine::new(&config).unwrap();
        let module = Module::new(&engine, Form::Plain.of(uploaded)).unwrap();
        let mut linker = Linker::new(&engine);
        linker
            .func_wrap("ic0", "msg_arg_data_size", |caller: Caller<'_, Vec<u8>>| {
                caller.data().len() as i32
            })
            .unwrap();
        linker
            .func_wrap(
                "ic0",
                "msg_arg_data_copy",
                |mut caller: Caller<'_, Vec<u8>>, to: i32, from: i32, size: i32| {
                    let bytes = caller.data()[from as usize..][..size as usize].to_vec();
                    let heap = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
                    heap.write(&mut caller, to as usize, &bytes).unwrap();
                },
            )
            .unwrap();
        linker.func_wrap("ic0", "msg_reply_data_append", |_: i32, _: i32| {}).unwrap();
        linker.func_wrap("ic0", "msg_reply", || {}).unwrap();
        linker.func_wrap("ic0", "performance_counter", |_: i32| 0_i64).unwrap();
        linker.func_wrap("ic0", "time", || 0_i64).unwrap();
        linker.define_unknown_imports_as_traps(&module).unwrap();
        Self { module, linker }
    }

    fn instantiate(&self) -> Running {
        let mut store = Store::new(self.module.engine(), Vec::new());
        let instance = self.linker.instantiate(&mut store, &self.module).unwrap();
        let mut running = Running { store, instance };
        running.call("canister_init", b"DIDL\0\0");
        running
    }
}

/// An instance of it, with the argument of the message.
struct Running {
    store: Store<Vec<u8>>,
    instance: Instance,
}

impl Running {
    fn call(&mut self, export: &str, argument: &[u8]) {
        *self.store.data_mut() = argument.to_vec();
        let function = self.instance.get_typed_func::<(), ()>(&mut self.store, export).unwrap();
        function.call(&mut self.store, ()).unwrap();
    }
}
