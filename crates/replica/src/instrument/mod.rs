//! Rewrites a canister's module so that it counts instructions as the Internet Computer does.
//!
//! ```text
//!   validate → [charges → body → rewrite + stable] → compile → execute
//! ```
//!
//! Exports that the rewriting adds:
//!
//! | export      | meaning                                           |
//! |-------------|---------------------------------------------------|
//! | `counter`   | global: instructions left of the slice            |
//! | `accessible`, `writable` | globals: stable pages left for the message |
//! | `calls N`, `bytes N` | globals: calls and bytes of the stable call number N |
//! | `heap`, `stable`, `byte map` | memories                         |
//! | `page map`  | memory, under rules that charge for touching pages: see `page_map` |
//! | `table`     | the canister's table, if it has one: callbacks are in it |
//! | `global N`  | mutable globals of the canister, which are part of its state |
//! | `start`     | the start function, called by the host            |
//! | `profile …` | only in the profiled form: see `profiled`         |
//!
//! Functions stay exported as `function NAME`; all other exports are dropped. Active data segments
//! become empty passive ones: the host writes them to the heap once, at install, instead of at
//! every instantiation.

mod body;
mod charges;
mod instrumented;
mod rewrite;
pub mod stable;

pub use body::Metering;
pub use charges::compiling_estimate;
pub use instrumented::{HOST, Instrumented, TABLE, page_map, profiled};
pub use rewrite::{HOST_FUNCTIONS, instrument, is_stable_call, long_copies};

/// Must change with any change of rewritten modules, so that cached modules of another version are
/// not used.
pub const VERSION: u32 = 10;

/// A snapshot of instrumented modules, which shows any changed price, check or index, and
/// comparisons of generated modules with and without instrumentation.
///
/// Without instrumentation, a generated module runs in a plain engine with the same features, newly
/// instantiated for each message on the heap and globals that the canister had before. The outcome,
/// the heap and every mutable global must be equal afterwards. Generated modules terminate because
/// they have their own fuel.
#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use arbitrary::Unstructured;
    use ic_principal::Principal;
    use wasm_encoder::reencode::{self, Reencode, utils};
    use wasm_encoder::{ExportKind, ExportSection};
    use wasmparser::ValType;
    use wasmtime::{Engine, Instance, Store, Val};

    use super::*;
    use crate::compiler::STACK;
    use crate::fault::{ErrorCode, Fault, Reject};
    use crate::module::Module;
    use crate::profile::Span;
    use crate::rules::{Rules, WASM_STACK};
    use crate::state::GlobalValue;
    use crate::validate::{Purpose, validate};
    use crate::{Canister, Execution, Replica};

    fn instrumented(wat: &str, rules: Rules) -> Instrumented {
        let wasm = wat::parse_str(wat).unwrap();
        validate(&wasm, rules, Purpose::Everything).unwrap();
        let instrumented = instrument(&wasm, Metering::Local, rules).unwrap();
        wasmparser::Validator::new().validate_all(&instrumented.wasm).unwrap();
        instrumented
    }

    fn whole(wat: &str) -> String {
        wasmprinter::print_bytes(instrumented(wat, Rules::of_2025_10()).wasm).unwrap()
    }

    /// The functions with these numbers, not counting imports.
    fn functions(wat: &str, numbers: std::ops::RangeInclusive<usize>) -> String {
        let printed = whole(wat);
        let functions = printed.split("\n  (func ").skip(1).enumerate();
        functions
            .filter(|(number, _)| numbers.contains(number))
            .map(|(_, text)| {
                let (body, _) = text.split_once("\n  )").unwrap();
                format!("(func {body}\n)\n")
            })
            .collect()
    }

    /// A module of one function with these operators.
    fn body(operators: &str) -> String {
        functions(&format!("(module (memory 1) (func (param i32) {operators}))"), 0..=0)
    }

    /// Small modules as text, and a large one by its hash.
    #[test]
    fn rewritten_modules_do_not_depend_on_the_host() {
        let shown = [
            ("a large module", large_module()),
            ("an empty function", whole("(module (func))")),
            (
                "an if with else",
                body(
                    "local.get 0 if (result i32) i32.const 1 else i32.const 2 i32.const 3 i32.div_u \
                     end drop",
                ),
            ),
            ("an if without operators is not charged", body("local.get 0 if else end")),
            ("a loop", body("loop local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0 end")),
            (
                "a br_table",
                body("block block local.get 0 br_table 0 1 2 end nop end nop nop return"),
            ),
            ("bulk memory", functions(BULK, 0..=1)),
            ("bulk memory of a 64-bit heap", functions(BULK_64, 0..=1)),
            ("growing the heap", body("local.get 0 memory.grow drop")),
            ("calls", functions(CALLS, 0..=4)),
            ("arguments on the stack", functions(STACKED, 0..=3)),
            ("stable read with 32-bit addresses", functions(STABLE_READ, 0..=2)),
            ("stable write with 64-bit addresses", functions(STABLE_WRITE, 0..=2)),
            ("size and growth of stable memory", whole(STABLE_SIZE)),
            ("a start function", whole(START)),
            ("globals and data", whole(GLOBALS)),
        ];
        let text = shown.map(|(name, text)| format!("== {name}\n\n{}\n", text.trim_end()));
        insta::assert_snapshot!(text.join("\n"));
    }

    /// So large that every host is known to rewrite alike.
    fn large_module() -> String {
        use sha2::{Digest, Sha256};
        use std::io::Read;

        let mut wasm = Vec::new();
        let file = &include_bytes!("../../tests/motoko/enhanced_counter.wasm.gz")[..];
        flate2::read::GzDecoder::new(file).read_to_end(&mut wasm).unwrap();
        let mut text = String::new();
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            for metering in [Metering::Local, Metering::Stored, Metering::Profiled] {
                let rewritten = instrument(&wasm, metering, rules).unwrap().wasm;
                let hash = crate::files::hex::encode(&Sha256::digest(&rewritten));
                text += &format!("{rules} {metering:?}: {} bytes, {hash}\n", rewritten.len());
            }
        }
        text
    }

    const BULK: &str = r#"(module (memory 1) (data $d "data")
        (func (param i32)
            (memory.fill (i32.const 0) (i32.const 1) (local.get 0))
            (memory.copy (i32.const 0) (i32.const 8) (local.get 0))
            (memory.init $d (i32.const 0) (i32.const 0) (local.get 0))
            (data.drop $d)))"#;

    const BULK_64: &str = r#"(module (memory i64 1) (data $d "data")
        (func (param i64)
            (memory.fill (i64.const 0) (i32.const 1) (local.get 0))
            (memory.init $d (i64.const 0) (i32.const 0) (i32.const 4))
            (i64.store (i64.const 0) (i64.load (i64.const 8)))))"#;

    const CALLS: &str = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (table 1 funcref) (elem (i32.const 0) $twice)
        (type $number (func (param i32) (result i32)))
        (func $twice (type $number) (i32.add (local.get 0) (local.get 0)))
        (func $direct (result i32) (call $reply) (call $twice (i32.const 7)))
        (func $indirect (result i32) (call_indirect (type $number) (i32.const 7) (i32.const 0)))
        (func $tail (result i32) (return_call $twice (i32.const 7)))
        (func $tail_indirect (result i32)
            (return_call_indirect (type $number) (i32.const 7) (i32.const 0))))"#;

    /// Functions with arguments on the stack: `$all` is called only directly, `$known` is in a table.
    const STACKED: &str = r#"(module (memory 1)
        (global $sum (mut i64) (i64.const 0))
        (type $five (func (param i32 i32 i32 i32 i32) (result i32)))
        (table 1 funcref) (elem (i32.const 0) $known)
        (func $known (type $five) (i32.sub (local.get 0) (local.get 4)))
        (func $direct (type $five)
            (local.set 4 (i32.mul (local.get 4) (i32.const -3)))
            (i32.add (local.get 0) (local.tee 4 (i32.shr_s (local.get 4) (i32.const 1)))))
        (func $all
            (param $left i32) (param i64 f32 i32 i64) (param $a i32) (param f64) (param $b i32) (param i64)
            (param $c i32) (result i64)
            (local $sum i64)
            (local.set $sum (i64.add
                (i64.add (i64.extend_i32_s (local.get $a))
                    (i64.mul (i64.extend_i32_u (local.get $b)) (i64.const 3)))
                (i64.add (i64.mul (i64.extend_i32_s (local.get $c)) (i64.const 7))
                    (i64.add (local.get 1) (i64.add (local.get 4) (local.get 8))))))
            (if (local.get $left) (then
                (return_call $all (i32.sub (local.get $left) (i32.const 1)) (local.get $sum) (local.get 2)
                    (local.get 3) (local.get 8) (local.get $c) (local.get 6) (local.get $a) (local.get 4)
                    (local.get $b))))
            (local.get $sum))
        (func (export "canister_update a")
            (global.set $sum (i64.add (global.get $sum) (i64.extend_i32_s (i32.add
                (call_indirect (type $five) (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4)
                    (i32.const -5) (i32.const 0))
                (call $direct (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4)
                    (call $direct (i32.const -6) (i32.const 0) (i32.const 0) (i32.const 0)
                        (i32.const -7))))))))
        (func (export "canister_update b")
            (global.set $sum (i64.add (global.get $sum)
                (call $all (i32.const 5) (i64.const -1) (f32.const 2) (i32.const 3) (i64.const 4)
                    (i32.const -5) (f64.const 6) (i32.const -7) (i64.const 8) (i32.const 0x80000000)))))
        (func (export "canister_update c")
            (drop (call $known (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5)))))"#;

    const STABLE_READ: &str = r#"(module (import "ic0" "stable_read" (func (param i32 i32 i32)))
        (memory 1)
        (func (call 0 (i32.const 1) (i32.const 2) (i32.const 3))))"#;

    const STABLE_WRITE: &str = r#"(module (import "ic0" "stable64_write" (func (param i64 i64 i64)))
        (memory 1)
        (func (call 0 (i64.const 1) (i64.const 2) (i64.const 3))))"#;

    const STABLE_SIZE: &str = r#"(module
        (import "ic0" "stable_grow" (func (param i32) (result i32)))
        (import "ic0" "msg_reply" (func))
        (import "ic0" "stable64_grow" (func (param i64) (result i64)))
        (import "ic0" "stable_size" (func (result i32)))
        (import "ic0" "stable64_size" (func (result i64)))
        (func (drop (call 0 (call 3))) (drop (call 2 (call 4))) (call 1)))"#;

    const START: &str =
        r#"(module (import "ic0" "msg_reply" (func)) (func) (func $start nop) (start $start))"#;

    const GLOBALS: &str = r#"(module (memory (export "m") 2 3)
        (global i32 (i32.const 1)) (global $n (export "n") (mut i64) (i64.const 2))
        (global (mut f32) (f32.const 3))
        (data (i32.const 16) "active") (data $p "passive") (data (i32.const 65536) "page")
        (func (export "canister_update counter") (global.set $n (i64.const 5)) (data.drop $p)))"#;

    #[test]
    fn properties_of_rewritten_modules() {
        assert!(instrumented(START, Rules::of_2025_10()).has_start);
        let instrumented = instrumented(GLOBALS, Rules::of_2025_10());
        assert_eq!(instrumented.globals, [(1, ValType::I64), (2, ValType::F32)]);
        assert_eq!(instrumented.data, [(16, b"active".to_vec()), (65_536, b"page".to_vec())]);
        assert_eq!((instrumented.has_heap, instrumented.heap_pages), (true, 2));
    }

    /// A function cannot have more locals than these and the counter.
    #[test]
    fn modules_with_many_locals_are_not_widened() {
        let many = "i64 ".repeat(49_999 - 5);
        let wat = format!(
            "(module (func $f (param i32 i32 i32 i32 i32) (local {many})
                (call $f (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0))))"
        );
        assert!(functions(&wat, 0..=0).contains("(param i32 i32 i32 i32 i32)"));
    }

    #[test]
    fn arguments_on_the_stack_arrive() {
        let replica = Replica::new(Rules::today(), None).unwrap();
        let wasm = wat::parse_str(STACKED).unwrap();
        let module = replica.compile(&wasm).unwrap();
        let plain = plain_module(&plain_engine(), &wasm, &module);
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
        for method in ["a", "b", "c"] {
            let before = Content::of(&canister);
            let mut fork = canister.fork();
            let execution = send(&mut canister, method);
            let (after, fault) = run_plainly(&plain, &module.rewritten().globals, method, &before);
            assert!(fault.is_none() && Content::of(&canister) == after, "{method}");
            assert_eq!(canister.state.globals == before.globals, method == "c");
            let profiled = fork.profile_update(Principal::anonymous(), method, &[], Span::Message);
            assert_eq!(counts(&profiled.unwrap().0), counts(&execution));
            assert!(Content::of(&fork) == Content::of(&canister), "{method}");
        }
    }

    /// Validation refuses such a module. If it did not, instrumenting would fail.
    #[test]
    fn an_operator_without_a_price_is_named() {
        let wasm = wat::parse_str(
            r#"(module (memory 1) (func) (func (drop (i32.atomic.load (i32.const 0)))))"#,
        );
        let error = instrument(&wasm.unwrap(), Metering::Local, Rules::of_2025_10()).unwrap_err();
        assert_eq!(error.to_string(), "operator I32AtomicLoad in function 1 has no price");
    }

    /// Number of modules that are compared; many generated ones are refused.
    const MODULES: usize = 300;
    /// Messages to each module: the methods `a`, `b` and `c` in turn.
    const MESSAGES: usize = 5;
    /// Function calls and loop iterations of a message.
    const FUEL: u32 = 2_000;
    const MAX_HEAP: u64 = 8 << 16;

    /// A small random number generator (xorshift), seeded so that every run is the same.
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

    /// A module with the methods `a`, `b` and `c`, or `None` if there were too few bytes.
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

    /// Also exports the heap and the mutable globals, under the names that instrumenting uses.
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

    /// State that a message can change.
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

    /// Runs a message without instrumentation. Returns the resulting content, and the trap if there
    /// was one.
    fn run_plainly(
        module: &wasmtime::Module,
        globals: &[(u32, ValType)],
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

    /// A module that passes validation must be instrumented and compiled, unless it uses `externref`:
    /// the engine is built without garbage collection.
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

    /// Counting in locals and counting in the global agree in all cases.
    #[test]
    fn both_ways_of_counting_agree() {
        let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
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

    /// The profiled form has the same behaviour and counts, and its tree adds up.
    #[test]
    fn a_profile_changes_nothing() {
        let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
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
        let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
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

                let (after, fault) =
                    run_plainly(&plain, &module.rewritten().globals, method, &before);
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
        // Both outcomes occur often enough.
        let returned = ended.get("returned").copied().unwrap_or(0);
        let trapped = compared * MESSAGES - returned;
        assert!(returned > MODULES && trapped > MODULES / 2, "{ended:?}");
    }
}
