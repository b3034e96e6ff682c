//! Backtraces of traps: the functions that were active, with their names in the uploaded module.
//!
//! ```text
//! Canister Backtrace:
//! stable64_write                     a call that the replica replaces by a function of its own
//! storage::write                     a name of the section `name`, demangled if it is one of Rust
//! unknown function at index 26       a function without a name
//! ```
//!
//! The innermost function is the first. If no function has a name, there is no backtrace. The index
//! of a function is that in the module which the replica rewrote: it adds imports of its own before
//! the others.
//!
//! Source: `wasmtime_embedder.rs`, `instrumentation.rs` of `rs/embedders`.

use std::collections::BTreeMap;
use std::fmt::Write;

use wasmparser::{KnownCustom, Name, NameSectionReader, Parser, Payload, TypeRef};

use crate::fault::{MAX_MESSAGE, shortened};
use crate::instrument::{HOST_FUNCTIONS, is_stable_call};

/// Longest backtrace, in functions.
const FRAMES: usize = 20;
/// Frames to ask the engine for. The profiled form calls the System API through functions that do
/// not count.
pub const CAPTURED: usize = FRAMES + 2;
/// Imports that the replica adds before those of a module.
const ADDED_IMPORTS: u32 = 5;

/// The functions of an uploaded module, by their index in the rewritten one.
#[derive(Debug, Default)]
pub struct Functions {
    /// Number of imports that remain imports.
    kept: u32,
    /// Number of imports.
    imports: u32,
    /// Number of functions of the module itself.
    own: u32,
    /// Names of the imports that became functions.
    stable_calls: Vec<String>,
    /// Names from the section `name`, by index in the uploaded module.
    names: BTreeMap<u32, String>,
    /// True if there is a section `name`.
    named: bool,
}

/// A function in a backtrace.
enum Frame<'a> {
    Named(&'a str),
    Unknown(u32),
}

impl Functions {
    /// Reads the functions of a valid module. Names that cannot be read are ignored.
    pub fn of(wasm: &[u8]) -> Self {
        let mut functions = Self::default();
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            match payload {
                Payload::ImportSection(reader) => {
                    for import in reader.into_imports().map_while(Result::ok) {
                        let TypeRef::Func(_) = import.ty else { continue };
                        functions.imports += 1;
                        match is_stable_call(import.name) {
                            true => functions.stable_calls.push(import.name.to_owned()),
                            false => functions.kept += 1,
                        }
                    }
                }
                Payload::FunctionSection(reader) => functions.own = reader.count(),
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(reader) = section.as_known() {
                        functions.named = true;
                        functions.read(reader);
                    }
                }
                _ => {}
            }
        }
        functions
    }

    fn read(&mut self, reader: NameSectionReader<'_>) {
        for part in reader.into_iter().map_while(Result::ok) {
            if let Name::Function(functions) = part {
                for naming in functions.into_iter().map_while(Result::ok) {
                    self.names.insert(naming.index, demangled(naming.name));
                }
            }
        }
    }

    /// The backtrace of these functions of the rewritten module, the innermost first.
    pub fn backtrace(&self, frames: impl Iterator<Item = u32>) -> Option<String> {
        if !self.named {
            return None;
        }
        let frames: Vec<_> = frames.filter_map(|index| self.frame(index)).take(FRAMES).collect();
        if !frames.iter().any(|frame| matches!(frame, Frame::Named(_))) {
            return None;
        }
        let mut text = "Canister Backtrace:\n".to_owned();
        for frame in frames {
            let _ = match frame {
                Frame::Named(name) => writeln!(text, "{name}"),
                Frame::Unknown(index) => writeln!(text, "unknown function at index {index}"),
            };
        }
        // More than what is left of it when the message of the reject is shortened.
        Some(shortened(text, 2 * MAX_MESSAGE, 50))
    }

    /// A function of the rewritten module, or `None` if only this replica has it.
    fn frame(&self, index: u32) -> Option<Frame<'_>> {
        let own = index.checked_sub(self.kept + HOST_FUNCTIONS)?;
        if own < self.own {
            let index = self.imports + own;
            let unknown = Frame::Unknown(index + ADDED_IMPORTS);
            return Some(self.names.get(&index).map_or(unknown, |name| Frame::Named(name)));
        }
        // A function that charges for sizes comes before the stable calls.
        let stable = own.checked_sub(self.own + 1)?;
        self.stable_calls.get(stable as usize).map(|name| Frame::Named(name))
    }
}

fn demangled(name: &str) -> String {
    match rustc_demangle::try_demangle(name) {
        Ok(demangled) => format!("{demangled:#}"),
        Err(_) => name.to_owned(),
    }
}
