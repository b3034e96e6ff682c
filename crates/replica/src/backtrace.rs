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
use std::fmt::{self, Write};

use wasmparser::{KnownCustom, Name, Parser, Payload, TypeRef};

use crate::fault::{MAX_MESSAGE, shortened};
use crate::instrument::{HOST_FUNCTIONS, is_stable_call, long_copies};
use crate::system_api::functions::AddressWidth;

/// Longest backtrace, in functions.
const FRAMES: usize = 20;
/// Frames to ask the engine for. The profiled form calls the System API through functions that do
/// not count.
pub const CAPTURED: usize = FRAMES + 2;
/// Imports that the replica adds before those of a module.
const ADDED_IMPORTS: u32 = 5;
/// Longest backtrace before the message of the reject is shortened, in bytes: more than what is left
/// of it then. Also the longest demangled name, because a short symbol can stand for a long one.
const MAX_TEXT: usize = 2 * MAX_MESSAGE;

/// The functions of an uploaded module, by their index in the rewritten one.
#[derive(Debug, Default)]
pub struct Functions {
    /// Number of imports that remain imports.
    kept: u32,
    /// Number of imports.
    imports: u32,
    /// Number of functions of the module itself.
    own: u32,
    /// Names of the imports that became functions, by function: some became two.
    stable_calls: Vec<String>,
    /// Names of functions by index in the uploaded module, as they are there.
    names: Option<BTreeMap<u32, String>>,
}

/// Reads the names of the first `count` functions from the section `name` of a valid module, if it
/// has one. Names that cannot be read are ignored.
pub fn function_names(wasm: &[u8], count: u32) -> Option<BTreeMap<u32, String>> {
    let mut names = None;
    // The section may be anywhere, and may name functions that do not exist.
    for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
        if let Payload::CustomSection(section) = payload
            && let KnownCustom::Name(reader) = section.as_known()
        {
            let names = names.get_or_insert_with(BTreeMap::new);
            for part in reader.into_iter().map_while(Result::ok) {
                if let Name::Function(functions) = part {
                    let functions = functions.into_iter().map_while(Result::ok);
                    for naming in functions.filter(|naming| naming.index < count) {
                        names.insert(naming.index, naming.name.to_owned());
                    }
                }
            }
        }
    }
    names
}

/// A function in a backtrace.
enum Frame<'a> {
    /// A function with this name in the module.
    Named(&'a str),
    /// A call that the replica replaces.
    Replaced(&'a str),
    /// A function without a name.
    Unknown(u32),
}

impl Functions {
    /// Reads the functions of a valid module. Names that cannot be read are ignored.
    pub fn of(wasm: &[u8]) -> Self {
        let mut functions = Self::default();
        let mut heap = AddressWidth::Bits32;
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
                Payload::MemorySection(reader) => {
                    let mut memories = reader.into_iter().map_while(Result::ok);
                    let wide = memories.any(|memory| memory.memory64);
                    heap = if wide { AddressWidth::Bits64 } else { AddressWidth::Bits32 };
                }
                _ => {}
            }
        }
        let calls: Vec<&str> = functions.stable_calls.iter().map(String::as_str).collect();
        let long: Vec<String> = long_copies(&calls, heap).into_iter().map(str::to_owned).collect();
        functions.stable_calls.extend(long);
        functions.names = function_names(wasm, functions.imports.saturating_add(functions.own));
        functions
    }

    /// The backtrace of these functions of the rewritten module, the innermost first.
    pub fn backtrace(&self, frames: impl Iterator<Item = u32>) -> Option<String> {
        let names = self.names.as_ref()?;
        let frames = frames.filter_map(|index| self.frame(index, names));
        let frames: Vec<_> = frames.take(FRAMES).collect();
        if frames.iter().all(|frame| matches!(frame, Frame::Unknown(_))) {
            return None;
        }
        let mut text = "Canister Backtrace:\n".to_owned();
        for frame in frames {
            let _ = match frame {
                Frame::Named(name) => writeln!(text, "{}", Demangled(name)),
                Frame::Replaced(name) => writeln!(text, "{name}"),
                Frame::Unknown(index) => writeln!(text, "unknown function at index {index}"),
            };
        }
        Some(shortened(text, MAX_TEXT, 50))
    }

    /// A function of the rewritten module, or `None` if only this replica has it.
    fn frame<'a>(&'a self, index: u32, names: &'a BTreeMap<u32, String>) -> Option<Frame<'a>> {
        let own = index.checked_sub(self.kept + HOST_FUNCTIONS)?;
        if own < self.own {
            let index = self.imports + own;
            let unknown = Frame::Unknown(index + ADDED_IMPORTS);
            return Some(names.get(&index).map_or(unknown, |name| Frame::Named(name)));
        }
        // A function that charges for sizes comes before the stable calls.
        let stable = own.checked_sub(self.own + 1)?;
        self.stable_calls.get(stable as usize).map(|name| Frame::Replaced(name))
    }
}

/// A name, demangled if it is one of Rust.
struct Demangled<'a>(&'a str);

impl fmt::Display for Demangled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(demangled) = rustc_demangle::try_demangle(self.0) else {
            return f.write_str(self.0);
        };
        let mut limited = Limited { to: f, left: MAX_TEXT };
        match write!(limited, "{demangled:#}") {
            // The words of the library for its own limit, which is 1 MB.
            Err(_) if limited.left == 0 => f.write_str("{size limit reached}"),
            written => written,
        }
    }
}

/// A writer that fails beyond a number of bytes.
struct Limited<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    left: usize,
}

impl Write for Limited<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = &text[..text.floor_char_boundary(self.left)];
        self.left = if kept.len() == text.len() { self.left - text.len() } else { 0 };
        self.to.write_str(kept)?;
        if kept.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
