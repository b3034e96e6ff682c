//! What functions are called.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use wasmparser::{ExternalKind, KnownCustom, Name, Parser, Payload, TypeRef};

use super::{Frame, FrameKind};
use crate::instrument::profiled::{HEAP_PAGE_FRAME, OS_PAGES_FRAME, STABLE_PAGE_FRAME};
use crate::system_api::names::MODULE;

/// Longest name that is told; what is longer ends in an ellipsis.
const LONGEST: usize = 1_000;

/// Names of a module's functions, as the module has them.
#[derive(Debug, Default)]
pub struct Names {
    /// Functions that are imported, by index.
    imports: Vec<String>,
    /// By index, from the section `name`.
    named: BTreeMap<u32, String>,
    /// By index, where a function is exported.
    exports: BTreeMap<u32, String>,
}

impl Names {
    /// Those of a module that was validated. A `name` section that cannot be read names
    /// nothing.
    pub fn of(wasm: &[u8]) -> Self {
        let mut names = Self::default();
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            match payload {
                Payload::ImportSection(reader) => {
                    for import in reader.into_imports().map_while(Result::ok) {
                        if let TypeRef::Func(_) = import.ty {
                            names.imports.push(import.name.to_owned());
                        }
                    }
                }
                Payload::ExportSection(reader) => {
                    for export in reader.into_iter().map_while(Result::ok) {
                        if export.kind == ExternalKind::Func {
                            let name = || export.name.to_owned();
                            names.exports.entry(export.index).or_insert_with(name);
                        }
                    }
                }
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(reader) = section.as_known() {
                        names.read(reader);
                    }
                }
                _ => {}
            }
        }
        names
    }

    fn read(&mut self, reader: wasmparser::NameSectionReader<'_>) {
        for part in reader.into_iter().map_while(Result::ok) {
            if let Name::Function(functions) = part {
                for naming in functions.into_iter().map_while(Result::ok) {
                    self.named.insert(naming.index, naming.name.to_owned());
                }
            }
        }
    }

    /// What the profiled form calls `frame`.
    pub fn frame(&self, frame: u32) -> Frame {
        let pages = match frame {
            OS_PAGES_FRAME => Some((FrameKind::StablePages, "[stable pages written]")),
            STABLE_PAGE_FRAME => Some((FrameKind::StablePages, "[stable page]")),
            HEAP_PAGE_FRAME => Some((FrameKind::HeapPages, "[heap page]")),
            _ => None,
        };
        if let Some((kind, name)) = pages {
            return Frame { kind, name: name.to_owned() };
        }
        if let Some(import) = self.imports.get(frame as usize) {
            return Frame { kind: FrameKind::SystemCall, name: format!("{MODULE}.{import}") };
        }
        let kind = FrameKind::Function(frame);
        let given = self.named.get(&frame).or_else(|| self.exports.get(&frame));
        let name = given.filter(|name| !name.is_empty());
        Frame { kind, name: name.map_or_else(|| format!("func[{frame}]"), |name| readable(name)) }
    }
}

/// A name as people write it: demangled, without the hash, in one line.
fn readable(name: &str) -> String {
    let mut short = Short(String::new());
    // Nothing but a name that is too long fails.
    if write!(short, "{:#}", rustc_demangle::demangle(name)).is_err() {
        short.0.push('…');
    }
    short.0
}

/// Text up to a length, without what is no part of a line.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.0.len() >= LONGEST {
                return Err(fmt::Error);
            }
            self.0.push(if letter.is_control() { '?' } else { letter });
        }
        Ok(())
    }
}
