//! Generated modules do the same with and without instrumentation.
//!
//! Without means: the generated module in a plain engine of the same features,
//! instantiated anew for each message on the heap and the globals that the canister
//! has before it. Afterwards the way it ended, the heap and every mutable global
//! are to be the same. Generated modules end by themselves, by a fuel of their own.

use std::collections::BTreeMap;
use std::convert::Infallible;

use arbitrary::Unstructured;
use ic_principal::Principal;
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{ExportKind, ExportSection};
use wasmtime::{Engine, Instance, Store, Val};

use crate::engine::STACK;
use crate::fault::Fault;
use crate::limits::WASM_STACK;
use crate::module::Module;
use crate::profile::Span;
use crate::reject::{ErrorCode, Reject};
use crate::state::GlobalValue;
use crate::{Canister, Execution, Replica};

/// Modules that are compared; of those generated, many are refused.
const MODULES: usize = 300;
/// Messages to each: the methods `a`, `b` and `c` in turn.
const MESSAGES: usize = 5;
/// Function calls and loop rounds that a message may make.
const FUEL: u32 = 2_000;
const MAX_HEAP: u64 = 8 << 16;

/// A small generator of random numbers (xorshift), so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// A module with the methods `a`, `b` and `c`, or `None` if the bytes were too few.
fn generate(random: &mut Random) -> Option<Vec<u8>> {
    let exports = r#"(module (func (export "canister_update a"))
        (func (export "canister_update b")) (func (export "canister_update c")))"#;
    let config = wasm_smith::Config {
        exports: Some(wat::parse_str(exports).unwrap()),
        allow_start_export: false,
        max_imports: 0,
        max_tags: 0,
        max_memory32_bytes: MAX_HEAP,
        max_memory64_bytes: u128::from(MAX_HEAP),
        memory_max_size_required: true,
        min_memories: 1,
        max_instructions: 400,
        max_table_elements: 1_000,
        // Globals of references are refused, and operators that change tables.
        reference_types_enabled: random.next().is_multiple_of(4),
        memory64_enabled: random.next().is_multiple_of(2),
        exceptions_enabled: false,
        gc_enabled: false,
        relaxed_simd_enabled: false,
        threads_enabled: false,
        extended_const_enabled: false,
        ..wasm_smith::Config::default()
    };
    let bytes = random.bytes(4_000);
    let mut module = wasm_smith::Module::new(config, &mut Unstructured::new(&bytes)).ok()?;
    module.ensure_termination(FUEL).unwrap();
    Some(module.to_bytes())
}

/// Exports the heap and the mutable globals too, under the names that
/// instrumenting gives them.
struct Expose<'m>(&'m Module);

impl Reencode for Expose<'_> {
    type Error = Infallible;

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        utils::parse_export_section(self, exports, section)?;
        let rewritten = self.0.rewritten();
        if rewritten.has_heap {
            exports.export("heap", ExportKind::Memory, 0);
        }
        for (index, _) in &rewritten.globals {
            exports.export(&format!("global {index}"), ExportKind::Global, *index);
        }
        Ok(())
    }
}

fn plain_engine() -> Engine {
    let mut config = wasmtime::Config::new();
    config
        .cranelift_nan_canonicalization(true)
        .async_stack_size(WASM_STACK + (1 << 20))
        .max_wasm_stack(WASM_STACK)
        .wasm_memory64(true)
        .wasm_tail_call(true);
    Engine::new(&config).unwrap()
}

fn plain_module(engine: &Engine, wasm: &[u8], module: &Module) -> wasmtime::Module {
    let mut exposed = wasm_encoder::Module::new();
    let parser = wasmparser::Parser::new(0);
    Expose(module).parse_core_module(&mut exposed, parser, wasm).unwrap();
    wasmtime::Module::new(engine, exposed.finish()).unwrap()
}

/// What a message can change.
#[derive(Clone, PartialEq)]
struct Content {
    heap: Vec<u8>,
    globals: Vec<GlobalValue>,
}

impl Content {
    fn of(canister: &Canister) -> Self {
        Self {
            heap: canister.state.heap.map(0, 0).unwrap().bytes().to_vec(),
            globals: canister.state.globals.clone(),
        }
    }
}

/// Runs a message without instrumentation; answers what it leaves, and why it
/// trapped if it did.
fn run_plainly(
    module: &wasmtime::Module,
    globals: &[(u32, wasmparser::ValType)],
    method: &str,
    before: &Content,
) -> (Content, Option<Fault>) {
    let mut store = Store::new(module.engine(), ());
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    let mut heap = instance.get_memory(&mut store, "heap");
    if let Some(heap) = &mut heap {
        let missing = before.heap.len() as u64 / 65_536 - heap.size(&store);
        heap.grow(&mut store, missing).unwrap();
        heap.data_mut(&mut store).copy_from_slice(&before.heap);
    }
    let globals: Vec<wasmtime::Global> = globals
        .iter()
        .map(|(index, _)| instance.get_global(&mut store, &format!("global {index}")).unwrap())
        .collect();
    for (global, value) in globals.iter().zip(&before.globals) {
        global.set(&mut store, value.value()).unwrap();
    }
    let function = instance
        .get_typed_func::<(), ()>(&mut store, &format!("canister_update {method}"))
        .unwrap();
    let result = stacker::maybe_grow(STACK, 2 * STACK, || function.call(&mut store, ()));
    let heap = heap.map_or_else(Vec::new, |heap| heap.data(&store).to_vec());
    let globals: Vec<Val> = globals.iter().map(|global| global.get(&mut store)).collect();
    let globals = globals.iter().map(|value| GlobalValue::read(value).unwrap()).collect();
    (Content { heap, globals }, result.err().map(Fault::from_engine))
}

fn send(canister: &mut Canister, method: &str) -> Execution {
    canister.update(Principal::anonymous(), method, &[]).unwrap()
}

/// A module that passed the rules is instrumented and compiled, unless it uses
/// `externref`: the engine is built without garbage collection.
fn refused_by_a_rule(reject: &Reject) {
    const RULES: &[&str] = &[
        "Wasm module is not valid: ",
        "Wasm module has invalid data segment",
        "undefined element: out of bounds table access",
        "gc types are disallowed",
    ];
    let rule = RULES.iter().any(|rule| reject.message.contains(rule));
    assert!(rule, "{reject}");
}

fn counts(execution: &Execution) -> (u64, u64, u128) {
    (execution.instructions.get(), execution.charge.get(), execution.cycles.get())
}

/// Counting in locals and counting in the global are the same, whatever a message meets.
#[test]
fn both_ways_of_counting_agree() {
    let replica = Replica::new(crate::Rules::of_2025_10(), None).unwrap();
    let mut random = Random(0xc0de);
    let (mut compared, mut trapped) = (0, 0);
    while compared < MODULES / 2 {
        let Some(wasm) = generate(&mut random) else {
            continue;
        };
        let Ok(module) = replica.compile(&wasm) else {
            continue;
        };
        let stored = replica.compile_stored(&wasm).unwrap();
        compared += 1;
        let [mut one, mut other] = [module, stored].map(|module| {
            let mut canister = replica.create_canister().unwrap();
            canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
            canister
        });
        for method in ["a", "b", "c"].into_iter().cycle().take(MESSAGES) {
            let (execution, expected) = (send(&mut one, method), send(&mut other, method));
            let place = || format!("{method}:\n{}", wasmprinter::print_bytes(&wasm).unwrap());
            assert_eq!(execution.outcome, expected.outcome, "{}", place());
            assert_eq!(counts(&execution), counts(&expected), "{}", place());
            assert_eq!(execution.memory, expected.memory, "{}", place());
            assert!(Content::of(&one) == Content::of(&other), "{}", place());
            let code = execution.outcome.unwrap_err().code;
            trapped += usize::from(code == ErrorCode::CanisterTrapped);
        }
    }
    assert!(trapped > compared / 2, "{trapped} traps in {compared} modules");
}

/// The profiled form does and counts the same, and has all of it in its tree.
#[test]
fn a_profile_changes_nothing() {
    let replica = Replica::new(crate::Rules::of_2025_10(), None).unwrap();
    let mut random = Random(0xf1a3e);
    let (mut compared, mut trapped, mut stacks) = (0, 0, 0);
    while compared < MODULES / 2 {
        let Some(wasm) = generate(&mut random) else {
            continue;
        };
        let Ok(module) = replica.compile(&wasm) else {
            continue;
        };
        compared += 1;
        let mut normal = replica.create_canister().unwrap();
        normal.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
        let mut profiled = normal.fork();
        for method in ["a", "b", "c"].into_iter().cycle().take(MESSAGES) {
            let place = || format!("{method}:\n{}", wasmprinter::print_bytes(&wasm).unwrap());
            let expected = send(&mut normal, method);
            let (execution, profile) = profiled
                .profile_update(Principal::anonymous(), method, &[], Span::Message)
                .unwrap_or_else(|error| panic!("{error}: {}", place()));
            assert_eq!(execution.outcome, expected.outcome, "{}", place());
            assert_eq!(counts(&execution), counts(&expected), "{}", place());
            assert_eq!(execution.memory, expected.memory, "{}", place());
            assert!(Content::of(&profiled) == Content::of(&normal), "{}", place());
            let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
            assert_eq!(sum, execution.instructions.get(), "{}", place());
            assert_eq!(sum + profile.heap_pages.get(), execution.charge.get(), "{}", place());
            stacks += profile.nodes.len();
            let code = execution.outcome.unwrap_err().code;
            trapped += usize::from(code == ErrorCode::CanisterTrapped);
        }
    }
    assert!(trapped > compared / 2, "{trapped} traps in {compared} modules");
    assert!(stacks > 2 * compared * MESSAGES, "{stacks} stacks in {compared} modules");
}

#[test]
fn instrumented_and_plain_do_the_same() {
    let replica = Replica::new(crate::Rules::of_2025_10(), None).unwrap();
    let engine = plain_engine();
    let mut random = Random(0x5eed);
    let (mut compared, mut ended) = (0, BTreeMap::<String, usize>::new());
    while compared < MODULES {
        let Some(wasm) = generate(&mut random) else {
            continue;
        };
        let module = match replica.compile(&wasm) {
            Ok(module) => module,
            Err(reject) => {
                refused_by_a_rule(&reject);
                continue;
            }
        };
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
        let plain = plain_module(&engine, &wasm, &module);
        compared += 1;

        for (number, method) in ["a", "b", "c"].into_iter().cycle().take(MESSAGES).enumerate() {
            let place = || {
                let text = wasmprinter::print_bytes(&wasm).unwrap();
                format!("message {number}, {method}, of module {compared}:\n{text}")
            };
            let before = Content::of(&canister);
            let mut fork = canister.fork();
            let execution = send(&mut canister, method);
            let reject = execution.outcome.clone().unwrap_err();

            let (after, fault) = run_plainly(&plain, &module.rewritten().globals, method, &before);
            match &fault {
                None => {
                    assert_eq!(reject.code, ErrorCode::CanisterDidNotReply, "{}", place());
                    assert!(Content::of(&canister) == after, "other content: {}", place());
                }
                Some(fault) => {
                    assert_eq!(reject, fault.reject(&canister.id()), "{}", place());
                    assert!(Content::of(&canister) == before, "not undone: {}", place());
                }
            }
            let end = fault.map_or_else(|| "returned".to_owned(), |fault| fault.to_string());
            *ended.entry(end).or_default() += 1;

            let again = send(&mut fork, method);
            assert_eq!(counts(&again), counts(&execution), "{}", place());
            assert!(Content::of(&fork) == Content::of(&canister), "{}", place());
            assert!(execution.instructions.get() >= 1, "{}", place());
            assert!(execution.charge >= execution.instructions, "{}", place());
        }
    }
    // Both ways of ending are met, so that both are compared.
    let returned = ended.get("returned").copied().unwrap_or(0);
    let trapped = compared * MESSAGES - returned;
    assert!(returned > MODULES && trapped > MODULES / 2, "{ended:?}");
}
