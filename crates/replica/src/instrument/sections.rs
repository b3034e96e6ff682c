//! Reads a module apart.

use wasmparser::{FunctionBody, Parser, Payload};

use super::Error;

/// The module's sections, read but not interpreted.
#[derive(Default)]
pub struct Sections<'a> {
    /// Function types.
    pub types: Option<wasmparser::TypeSectionReader<'a>>,
    /// Number of parameters of each function type.
    pub params: Vec<u32>,
    /// Results of each function type.
    pub results: Vec<Vec<wasmparser::ValType>>,
    /// Imports.
    pub imports: Vec<wasmparser::Import<'a>>,
    /// Type of each function of the module.
    pub functions: Vec<u32>,
    /// Tables.
    pub tables: Option<wasmparser::TableSectionReader<'a>>,
    /// The heap.
    pub memory: Option<wasmparser::MemoryType>,
    /// Globals.
    pub globals: Vec<wasmparser::Global<'a>>,
    /// Exports.
    pub exports: Vec<wasmparser::Export<'a>>,
    /// The start function.
    pub start: Option<u32>,
    /// Element segments.
    pub elements: Option<wasmparser::ElementSectionReader<'a>>,
    /// Number of data segments, where the module says it in advance.
    pub data_count: Option<u32>,
    /// Bodies of the functions.
    pub bodies: Vec<FunctionBody<'a>>,
    /// Data segments.
    pub data: Vec<wasmparser::Data<'a>>,
}

impl<'a> Sections<'a> {
    /// Reads a valid module.
    ///
    /// # Errors
    ///
    /// If the module is not valid after all.
    pub fn parse(wasm: &'a [u8]) -> Result<Self, Error> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(reader) => {
                    for ty in reader.clone().into_iter_err_on_gc_types() {
                        let ty = ty?;
                        sections.params.push(ty.params().len() as u32);
                        sections.results.push(ty.results().to_vec());
                    }
                    sections.types = Some(reader);
                }
                Payload::ImportSection(reader) => {
                    sections.imports = reader.into_imports().collect::<Result<_, _>>()?;
                }
                Payload::FunctionSection(reader) => {
                    sections.functions = reader.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::TableSection(reader) => sections.tables = Some(reader),
                Payload::MemorySection(reader) => {
                    sections.memory = reader.into_iter().next().transpose()?;
                }
                Payload::GlobalSection(reader) => {
                    sections.globals = reader.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::ExportSection(reader) => {
                    sections.exports = reader.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::StartSection { func, .. } => sections.start = Some(func),
                Payload::ElementSection(reader) => sections.elements = Some(reader),
                Payload::DataCountSection { count, .. } => sections.data_count = Some(count),
                Payload::CodeSectionEntry(body) => sections.bodies.push(body),
                Payload::DataSection(reader) => {
                    sections.data = reader.into_iter().collect::<Result<_, _>>()?;
                }
                _ => {}
            }
        }
        Ok(sections)
    }
}
