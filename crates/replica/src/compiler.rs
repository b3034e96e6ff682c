//! An engine with the linkers of its modules.

use wasmtime::{Engine, Linker};

use crate::engine::{self, Effort};
use crate::rules::Rules;
use crate::system_api::host::Host;
use crate::system_api::link;
use crate::system_api::names::AddressWidth;

/// Compiles and links modules with one effort.
pub(crate) struct Compiler {
    pub engine: Engine,
    pub effort: Effort,
    wasm32: Linker<Host>,
    wasm64: Linker<Host>,
}

impl Compiler {
    pub fn new(rules: Rules, effort: Effort) -> wasmtime::Result<Self> {
        let engine = engine::new(rules, effort)?;
        let mut wasm32 = Linker::new(&engine);
        link(&mut wasm32, AddressWidth::Bits32)?;
        let mut wasm64 = Linker::new(&engine);
        link(&mut wasm64, AddressWidth::Bits64)?;
        Ok(Self { engine, effort, wasm32, wasm64 })
    }

    /// The linker of modules whose heap addresses have this width.
    pub fn linker(&self, width: AddressWidth) -> &Linker<Host> {
        match width {
            AddressWidth::Bits32 => &self.wasm32,
            AddressWidth::Bits64 => &self.wasm64,
        }
    }
}
