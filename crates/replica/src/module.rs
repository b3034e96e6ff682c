//! A canister's module, validated, rewritten, compiled and linked, and the modules that a replica has in
//! memory, so that none is linked twice.
//!
//! ```text
//!   upload ── SHA-256 ──→ recent modules, with a lock each
//!                           ├─ linked: done
//!                           └─ taken from the folder or compiled (`compiler`) → link
//! ```

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ic_principal::Principal;
use wasmtime::{FrameInfo, InstancePre, WasmBacktrace};

use crate::backtrace::Functions;
use crate::compiler::{Compiler, Entries, Prepared};
use crate::fault::Fault;
use crate::instrument::{self, Instrumented, Metering};
use crate::profile::Names;
use crate::rules::{Rules, SubnetKind};
use crate::state::{ExportedGlobal, exported_globals};
use crate::system_api::functions::AddressWidth;
use crate::system_api::host::Host;
use crate::units::Instructions;
use crate::validate::{EntryPoint, MethodKind, ModuleInfo, Purpose, decode};

/// A module that canisters can be installed from. Cloning it is cheap.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    uploaded: Vec<u8>,
    hash: [u8; 32],
    rules: Rules,
    info: ModuleInfo,
    rewritten: Instrumented,
    globals: OnceLock<Vec<ExportedGlobal>>,
    ready: InstancePre<Host>,
    compiler: Arc<Compiler>,
    /// The compiler of its optimised form, if it is not optimised itself.
    optimiser: Option<Arc<Compiler>>,
    optimised: OnceLock<Module>,
    /// The cache of its other forms.
    entries: Arc<Entries>,
    exact: OnceLock<InstancePre<Host>>,
    profiled: OnceLock<Profiled>,
    functions: OnceLock<Functions>,
}

/// The form of a module that attributes charges to functions.
pub(crate) struct Profiled {
    pub ready: InstancePre<Host>,
    pub names: Names,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("info", &self.0.info).finish_non_exhaustive()
    }
}

impl Module {
    /// Links a module that was prepared from `uploaded`, whose SHA-256 is `hash`. `optimiser` makes its
    /// optimised form when that is needed, unless this is that form.
    pub(crate) fn link(
        prepared: Prepared,
        compiler: &Arc<Compiler>,
        entries: &Arc<Entries>,
        uploaded: &[u8],
        hash: [u8; 32],
        rules: Rules,
        optimiser: Option<&Arc<Compiler>>,
    ) -> Result<Self, Fault> {
        let Prepared { info, rewritten, compiled } = prepared;
        let ready = compiler
            .linker(info.address_width)
            .instantiate_pre(&compiled)
            .map_err(|error| Fault::Engine(format!("Failed to instantiate module: {error:#}")))?;
        let uploaded = uploaded.to_vec();
        Ok(Self(Arc::new(Inner {
            uploaded,
            hash,
            rules,
            info,
            rewritten,
            globals: OnceLock::new(),
            ready,
            compiler: Arc::clone(compiler),
            optimiser: optimiser.cloned(),
            optimised: OnceLock::new(),
            entries: Arc::clone(entries),
            exact: OnceLock::new(),
            profiled: OnceLock::new(),
            functions: OnceLock::new(),
        })))
    }

    /// The module as it was uploaded.
    pub fn uploaded(&self) -> &[u8] {
        &self.0.uploaded
    }

    /// The uncompressed module.
    pub fn wasm(&self) -> Cow<'_, [u8]> {
        // The module was decoded when it was compiled, so this cannot fail.
        decode(&self.0.uploaded).unwrap_or_default()
    }

    /// Returns an estimate of the instructions that the Internet Computer charges for compiling the
    /// module, without the functions that it adds itself. Nothing here charges for them.
    pub fn compiling(&self) -> Instructions {
        // The module was rewritten from the same bytes, so this cannot fail.
        Instructions(instrument::compiling_estimate(&self.wasm(), self.rules()).unwrap_or_default())
    }

    /// True if the module has enhanced orthogonal persistence: upgrades say whether the heap stays.
    pub fn has_enhanced_persistence(&self) -> bool {
        self.info().custom_sections.contains_key("enhanced-orthogonal-persistence")
    }

    /// SHA-256 of the module as it was uploaded: the IC's module hash.
    pub fn hash(&self) -> [u8; 32] {
        self.0.hash
    }

    /// The rules under which it was compiled.
    pub fn rules(&self) -> Rules {
        self.0.rules
    }

    /// The same module on another kind of subnet. The kind decides on limits and fees, not on the
    /// code.
    pub(crate) fn on(&self, subnet: SubnetKind) -> Self {
        let of = &*self.0;
        Self(Arc::new(Inner {
            uploaded: of.uploaded.clone(),
            hash: of.hash,
            rules: of.rules.on(subnet),
            info: of.info.clone(),
            rewritten: of.rewritten.clone(),
            globals: of.globals.clone(),
            ready: of.ready.clone(),
            compiler: Arc::clone(&of.compiler),
            optimiser: of.optimiser.clone(),
            optimised: OnceLock::new(),
            entries: Arc::clone(&of.entries),
            exact: of.exact.clone(),
            profiled: OnceLock::new(),
            functions: OnceLock::new(),
        }))
    }

    /// The result of validation.
    pub fn info(&self) -> &ModuleInfo {
        &self.0.info
    }

    pub(crate) fn rewritten(&self) -> &Instrumented {
        &self.0.rewritten
    }

    /// The globals that the replica exports, except its own, in its order.
    pub(crate) fn globals(&self) -> &[ExportedGlobal] {
        self.0.globals.get_or_init(|| exported_globals(&self.wasm()))
    }

    /// True if heap addresses have 64 bits, which makes instructions more expensive.
    pub(crate) fn is_64_bit(&self) -> bool {
        self.rewritten().address_width == AddressWidth::Bits64
    }

    pub(crate) fn ready(&self) -> &InstancePre<Host> {
        &self.0.ready
    }

    /// The largest size of its heap, in WebAssembly pages.
    pub(crate) fn largest_heap(&self) -> u64 {
        let heap = self.0.ready.module().get_export("heap");
        let maximum = heap.and_then(|heap| heap.memory()?.maximum());
        maximum.unwrap_or_default()
    }

    /// The optimised form of a module that is not optimised itself, compiled at the first use if it is
    /// not cached.
    pub(crate) fn optimised(&self) -> Result<Option<&Self>, Fault> {
        let Inner { optimiser, optimised, hash, uploaded, entries, rules, .. } = &*self.0;
        let Some(compiler) = optimiser else { return Ok(None) };
        if let Some(optimised) = optimised.get() {
            return Ok(Some(optimised));
        }
        let (form, purpose) = (Metering::Local, Purpose::Queries);
        let prepared = entries.prepared(compiler, *hash, uploaded, form, purpose)?;
        let linked = Self::link(prepared, compiler, entries, uploaded, *hash, *rules, None)?;
        Ok(Some(optimised.get_or_init(|| linked)))
    }

    /// The module in the form that counts in its global, compiled at the first use if it is not cached.
    pub(crate) fn exact(&self) -> wasmtime::Result<&InstancePre<Host>> {
        if let Some(exact) = self.0.exact.get() {
            return Ok(exact);
        }
        let exact = self.linked(Metering::Stored)?;
        Ok(self.0.exact.get_or_init(|| exact))
    }

    /// The module in the form that attributes charges to functions, compiled at the first use if it is
    /// not cached.
    pub(crate) fn profiled(&self) -> wasmtime::Result<&Profiled> {
        if let Some(profiled) = self.0.profiled.get() {
            return Ok(profiled);
        }
        if let Some(optimised) = self.optimised()? {
            return optimised.profiled();
        }
        let ready = self.linked(Metering::Profiled)?;
        let names = Names::of(&self.wasm());
        Ok(self.0.profiled.get_or_init(|| Profiled { ready, names }))
    }

    /// Converts an error of the engine. A trap gets the backtrace that the replica adds.
    pub(crate) fn fault(&self, error: wasmtime::Error) -> Fault {
        let active = error.downcast_ref::<WasmBacktrace>();
        let frames =
            active.map_or(&[][..], WasmBacktrace::frames).iter().map(FrameInfo::func_index);
        let frames: Vec<u32> = frames.collect();
        Fault::from_engine(error).traced(|| {
            let functions = self.0.functions.get_or_init(|| Functions::of(&self.wasm()));
            functions.backtrace(frames.into_iter())
        })
    }

    /// Another form of the module. Its purpose was checked when it was first compiled.
    fn linked(&self, form: Metering) -> wasmtime::Result<InstancePre<Host>> {
        let Inner { compiler, hash, uploaded, entries, info, .. } = &*self.0;
        let prepared = entries.prepared(compiler, *hash, uploaded, form, Purpose::Queries)?;
        compiler.linker(info.address_width).instantiate_pre(&prepared.compiled)
    }

    pub(crate) fn method(&self, name: &str) -> Option<MethodKind> {
        let found = self.0.info.methods.iter().find(|method| method.name == name);
        found.map(|method| method.kind)
    }

    pub(crate) fn has(&self, entry_point: EntryPoint) -> bool {
        self.0.info.has(entry_point)
    }
}

/// Number of modules kept in memory, in addition to those that canisters use.
const RECENT: usize = 8;

/// The modules that a replica has compiled.
#[derive(Debug)]
pub(crate) struct Modules {
    entries: Arc<Entries>,
    /// Most recently used first.
    recent: Mutex<Vec<([u8; 32], Slot)>>,
}

/// Locked while its module is compiled, so that a second thread waits instead of compiling it too.
type Slot = Arc<Mutex<Option<Module>>>;

impl Modules {
    pub fn new(entries: Entries) -> Self {
        Self { entries: Arc::new(entries), recent: Mutex::default() }
    }

    pub fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Returns the module with that hash: a recent one, or what `link` makes of the folder's entry
    /// or of the compiled upload. Refused modules are not kept. A module that was kept for another
    /// purpose is refused as if it were new.
    pub fn get(
        &self,
        hash: [u8; 32],
        purpose: Purpose,
        link: impl FnOnce(&Arc<Entries>) -> Result<Module, Fault>,
    ) -> Result<Module, Fault> {
        let slot = self.slot(hash);
        let mut slot = lock(&slot);
        if let Some(module) = &*slot {
            purpose.check(module.info())?;
            return Ok(module.clone());
        }
        let module = link(&self.entries)?;
        *slot = Some(module.clone());
        Ok(module)
    }

    fn slot(&self, hash: [u8; 32]) -> Slot {
        let mut recent = lock(&self.recent);
        let known = recent.iter().position(|(other, _)| *other == hash);
        let entry = match known {
            Some(at) => recent.remove(at),
            None => (hash, Slot::default()),
        };
        let slot = Arc::clone(&entry.1);
        recent.insert(0, entry);
        recent.truncate(RECENT);
        slot
    }
}

/// A lock that a panicking thread held. The slot has no module then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id of the first canister on PocketIC and on a new subnet.
pub fn first_canister() -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, 0, 1, 1])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sha2::{Digest, Sha256};
    use tempfile::TempDir;

    use super::*;
    use crate::cache::Note;
    use crate::{Effort, Replica, Span};

    const MODULE: &str = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (memory 1)
        (global $n (mut i64) (i64.const 7))
        (global $f (mut f64) (f64.const 0.5))
        (data (i32.const 100) "some data")
        (data (i32.const 70) "more")
        (func (export "canister_query show")
            (call $append (i32.const 64) (i32.const 50))
            (call $reply))
        (func (export "canister_query trap")
            (drop (i32.div_u (i32.const 1) (i32.const 0))))
        (@custom "icp:public what" "ever"))"#;

    /// A replica with a cache, and the notes about it.
    fn replica(folder: &TempDir) -> (Replica, Arc<Mutex<Vec<String>>>) {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let handler = Arc::clone(&notes);
        let tell = move |note: Note| lock(&handler).push(note.to_string());
        (
            Replica::with_notes(Rules::of_2025_10(), Some(folder.path().join("below")), tell)
                .unwrap(),
            notes,
        )
    }

    fn entries(folder: &TempDir) -> Vec<PathBuf> {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder.path().join("below"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        entries
    }

    /// The observable behaviour and properties of a module.
    fn seen(replica: &Replica) -> String {
        let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        let anyone = Principal::anonymous();
        let installed = canister.install(&module, anyone, &[]).unwrap();
        let shown = canister.query(anyone, "show", &[]).unwrap();
        let rewritten = module.rewritten();
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            module.info(),
            module.hash(),
            (
                rewritten.has_heap,
                rewritten.heap_pages,
                rewritten.has_start,
                rewritten.address_width
            ),
            (&rewritten.globals, &rewritten.data),
            (installed.instructions, installed.charge, installed.memory),
            shown.outcome,
            shown.instructions,
        )
    }

    #[test]
    fn a_module_from_the_cache_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (fresh, _) = replica(&folder);
        let expected = seen(&fresh);
        let entries = entries(&folder);
        assert_eq!(entries.len(), 1, "{entries:?}");
        let (again, notes) = replica(&folder);
        // An invalid upload shows that nothing is validated again.
        let key = Sha256::digest(wat::parse_str(MODULE).unwrap()).into();
        let slot = again.compile_as(key, b"nothing", Purpose::Everything).ok().unwrap();
        assert_eq!(slot.info().methods.len(), 2);
        let (again, _) = replica(&folder);
        assert_eq!(seen(&again), expected);
        assert_eq!(lock(&notes).len(), 0);
    }

    #[test]
    fn other_forms_of_a_module_are_kept_too() {
        let folder = tempfile::tempdir().unwrap();
        let wasm = wat::parse_str(MODULE).unwrap();
        let anyone = Principal::anonymous();
        let both = |module: &Module, replica: &Replica| {
            let mut canister = replica.create_canister().unwrap();
            canister.install(module, anyone, &[]).unwrap();
            let trapped = canister.query(anyone, "trap", &[]).unwrap();
            let (shown, profile) =
                canister.profile_query(anyone, "show", &[], Span::Message).unwrap();
            let nodes: Vec<_> = profile.nodes.iter().map(|node| node.instructions).collect();
            let [trapped, shown] =
                [trapped, shown].map(|of| (of.outcome, of.instructions, of.charge));
            (trapped, shown, nodes)
        };
        let (fresh, _) = replica(&folder);
        let expected = both(&fresh.compile(&wasm).unwrap(), &fresh);
        assert_eq!(entries(&folder).len(), 3, "normal, exact after a trap, and for profiles");
        // An invalid upload cannot be compiled.
        let (again, notes) = replica(&folder);
        let key = Sha256::digest(&wasm).into();
        let module = again.compile_as(key, b"nothing", Purpose::Everything).ok().unwrap();
        assert_eq!(both(&module, &again), expected);
        assert_eq!(lock(&notes).len(), 0, "{notes:?}");
    }

    /// A module is compiled with the least effort if it is not there in optimised form. Each form has an
    /// entry, and a trap of an operator adds those with exact counts.
    #[test]
    fn a_module_that_is_not_optimised_has_an_entry_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below");
        let wasm = wat::parse_str(MODULE).unwrap();
        let anyone = Principal::anonymous();
        let used = |effort, method| {
            let rules = Rules::of_2025_10();
            let replica = Replica::with_effort(effort, rules, Some(path.clone()), |_| {}).unwrap();
            let module = replica.compile(&wasm).unwrap();
            let mut canister = replica.create_canister().unwrap();
            canister.install(&module, anyone, &[]).unwrap();
            let of = canister.query(anyone, method, &[]).unwrap();
            (of.outcome, of.instructions, entries(&folder).len())
        };
        let with = |entries, (outcome, instructions, _)| (outcome, instructions, entries);
        let shown = used(Effort::Least, "show");
        assert_eq!(shown.2, 1);
        assert_eq!(used(Effort::Least, "show"), shown, "it is used again");
        // Optimised, and with exact counts.
        let trapped = used(Effort::Least, "trap");
        assert_eq!(trapped.2, 3);
        assert_eq!(used(Effort::Full, "trap"), trapped);
        assert_eq!(used(Effort::Full, "show"), with(3, shown.clone()));
        // The optimised form is preferred.
        let hash = crate::files::hex::encode(&Sha256::digest(&wasm));
        let is_optimised = |path: &PathBuf| path.to_string_lossy().contains(&hash);
        for other in entries(&folder).iter().filter(|path| !is_optimised(path)) {
            fs::remove_file(other).unwrap();
        }
        assert_eq!(used(Effort::Least, "show"), with(1, shown));
    }

    #[test]
    fn a_damaged_entry_is_rebuilt_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let expected = seen(&replica(&folder).0);
        let path = entries(&folder).remove(0);
        let whole = fs::read(&path).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let cut = |end: usize| whole[..end].to_vec();
        let damaged = [
            flipped(0),
            flipped(8),
            flipped(20),
            flipped(60),
            flipped(whole.len() / 2),
            flipped(whole.len() - 1),
            cut(0),
            cut(47),
            cut(whole.len() / 2),
            b"something else".repeat(10),
        ];
        for bytes in damaged {
            fs::write(&path, &bytes).unwrap();
            let (replica, notes) = replica(&folder);
            assert_eq!(seen(&replica), expected);
            let notes = lock(&notes);
            assert!(matches!(&notes[..], [note] if note.contains("is rebuilt")), "{notes:?}");
            assert_eq!(entries(&folder).len(), 1, "no temporary is left");
            assert_eq!(fs::read(&path).unwrap().len(), whole.len(), "it is written again");
        }
    }

    #[test]
    fn an_entry_of_another_module_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _) = replica(&folder);
        let expected = seen(&first);
        let ours = entries(&folder).remove(0);
        first.compile(&wat::parse_str("(module (memory 3))").unwrap()).unwrap();
        let other = entries(&folder).into_iter().find(|path| *path != ours).unwrap();
        fs::copy(&other, &ours).unwrap();
        let (again, notes) = replica(&folder);
        assert_eq!(seen(&again), expected);
        assert!(lock(&notes)[0].contains("another module"), "{notes:?}");
    }

    #[test]
    fn refused_modules_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (replica, _) = replica(&folder);
        let module = wat::parse_str(r#"(module (import "env" "f" (func)))"#).unwrap();
        let first = replica.compile(&module).unwrap_err();
        assert_eq!(replica.compile(&module).unwrap_err(), first);
        assert!(!folder.path().join("below").exists());
    }

    /// A file is in the place of the folder.
    #[test]
    fn a_cache_that_cannot_be_written_only_costs_time() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("below"), "in the way").unwrap();
        let (replica, notes) = replica(&folder);
        seen(&replica);
        assert!(lock(&notes).iter().any(|note| note.contains("could not be written")), "{notes:?}");
        assert_eq!(fs::read(folder.path().join("below")).unwrap(), b"in the way");
    }

    #[test]
    fn threads_that_need_the_same_module_compile_it_once() {
        let rules = Rules::of_2025_10();
        let engine = Compiler::new(rules, Effort::Full).unwrap().engine;
        let modules = Modules::new(Entries::new(&engine, rules, None, Box::new(|_| {})));
        let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
        let wasm = wat::parse_str(MODULE).unwrap();
        let linked = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let module = modules.get([1; 32], Purpose::Everything, |_| {
                        linked.fetch_add(1, Ordering::Relaxed);
                        Ok(replica.compile(&wasm).unwrap())
                    });
                    assert_eq!(module.unwrap().info().methods.len(), 2);
                });
            }
        });
        assert_eq!(linked.into_inner(), 1);
        assert_eq!(lock(&modules.recent).len(), 1);
        for key in 2..20 {
            let link = |_: &Arc<Entries>| Ok(replica.compile(&wasm).unwrap());
            modules.get([key; 32], Purpose::Everything, link).unwrap();
        }
        assert_eq!(lock(&modules.recent).len(), RECENT, "memory is not filled with modules");
    }

    /// A module that is kept for queries is still refused for other purposes.
    #[test]
    fn the_purpose_is_checked_for_cached_modules_too() {
        let wasm = wat::parse_str(
            r#"(module (func (export "canister_heartbeat"))
                (func (export "canister_query q")))"#,
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (fresh, _) = replica(&folder);
        let refused = fresh.compile(&wasm).unwrap_err();
        assert!(refused.message.contains("'canister_heartbeat', which the embedded"), "{refused}");
        fresh.compile_for_queries(&wasm).unwrap();
        assert_eq!(entries(&folder).len(), 1);
        // In memory, in the folder, and without a folder.
        assert_eq!(fresh.compile(&wasm).unwrap_err(), refused);
        fresh.compile_for_queries(&wasm).unwrap();
        let (again, notes) = replica(&folder);
        assert_eq!(again.compile(&wasm).unwrap_err(), refused);
        again.compile_for_queries(&wasm).unwrap();
        assert_eq!(again.compile(&wasm).unwrap_err(), refused);
        assert_eq!(lock(&notes).len(), 0, "{notes:?}");
        let without = Replica::new(Rules::of_2025_10(), None).unwrap();
        without.compile_for_queries(&wasm).unwrap();
        assert_eq!(without.compile(&wasm).unwrap_err(), refused);
    }
}
