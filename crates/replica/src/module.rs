//! A canister's module, validated, rewritten and compiled.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use ic_principal::Principal;
use wasmtime::{FrameInfo, InstancePre, WasmBacktrace};

use crate::backtrace::Functions;
use crate::compiler::Compiler;
use crate::entries::Entries;
use crate::fault::Fault;
use crate::globals::{self, ExportedGlobal};
use crate::instrument::{self, Instrumented, Metering};
use crate::prepared::Prepared;
use crate::profile::Names;
use crate::rules::{Rules, SubnetKind};
use crate::system_api::host::Host;
use crate::system_api::names::AddressWidth;
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
        self.0.globals.get_or_init(|| globals::exported(&self.wasm()))
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

/// The id of the first canister on PocketIC and on a new subnet.
pub fn first_canister() -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, 0, 1, 1])
}
