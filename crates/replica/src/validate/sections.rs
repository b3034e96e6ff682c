//! The sections of a module that is valid WebAssembly, as plain tables.

use wasmparser::{
    BinaryReaderError, CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, Export,
    FuncType, FunctionBody, GlobalType, Import, KnownCustom, MemoryType, Name, NameSectionReader,
    Naming, Operator, Parser, Payload, TableType, TypeRef,
};

use super::refusal::Invalid;
use crate::system_api::names::AddressWidth;
use crate::units::WasmPages;

/// The sections of a module. Tables, memories and globals do not include imported ones.
#[derive(Default)]
pub(super) struct Sections<'a> {
    /// By type index; `None` for types other than functions.
    types: Vec<Option<FuncType>>,
    pub imports: Vec<Import<'a>>,
    /// Type index of each function, imported functions first.
    functions: Vec<u32>,
    pub tables: Vec<TableType>,
    pub memories: Vec<MemoryType>,
    pub globals: Vec<GlobalType>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<Elements>,
    pub data: Vec<Data>,
    pub bodies: Vec<FunctionBody<'a>>,
    /// Names and contents.
    pub custom: Vec<(&'a str, &'a [u8])>,
    /// Names of functions, by index.
    pub function_names: Vec<(u32, &'a str)>,
}

/// An active element segment, which initializes a part of a table.
pub(super) struct Elements {
    pub table: u32,
    pub offset: Option<Constant>,
    pub len: u32,
}

/// An active data segment, which initializes a part of the heap.
pub(super) struct Data {
    pub offset: Option<Constant>,
    pub len: usize,
}

/// A constant expression that is a single constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constant {
    I32(i32),
    I64(i64),
}

impl Constant {
    fn of(expression: &ConstExpr<'_>) -> Result<Option<Self>, BinaryReaderError> {
        let mut operators = expression.get_operators_reader();
        let constant = match operators.read()? {
            Operator::I32Const { value } => Some(Self::I32(value)),
            Operator::I64Const { value } => Some(Self::I64(value)),
            _ => None,
        };
        Ok(constant.filter(|_| matches!(operators.read(), Ok(Operator::End))))
    }
}

impl<'a> Sections<'a> {
    /// Parses a module that passed the validator.
    ///
    /// # Errors
    ///
    /// If function names cannot be read. The validator skips custom sections.
    pub fn parse(wasm: &'a [u8]) -> Result<Self, Invalid> {
        Self::read(wasm)
            .map_err(|error| Invalid::Decoding(format!("Error from wasmparser: {error}")))
    }

    fn read(wasm: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            sections.add(payload?)?;
        }
        Ok(sections)
    }

    fn add(&mut self, payload: Payload<'a>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::TypeSection(groups) => {
                for group in groups {
                    self.types.extend(group?.into_types().map(
                        |ty| match ty.composite_type.inner {
                            CompositeInnerType::Func(function) => Some(function),
                            _ => None,
                        },
                    ));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import.ty {
                        self.functions.push(ty);
                    }
                    self.imports.push(import);
                }
            }
            Payload::FunctionSection(types) => {
                for ty in types {
                    self.functions.push(ty?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    self.tables.push(table?.ty);
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.memories.push(memory?);
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.globals.push(global?.ty);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    self.exports.push(export?);
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    if let ElementKind::Active { table_index, offset_expr } = segment.kind {
                        self.elements.push(Elements {
                            table: table_index.unwrap_or(0),
                            offset: Constant::of(&offset_expr)?,
                            len: match segment.items {
                                ElementItems::Functions(items) => items.count(),
                                ElementItems::Expressions(_, items) => items.count(),
                            },
                        });
                    }
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    if let DataKind::Active { offset_expr, .. } = segment.kind {
                        let offset = Constant::of(&offset_expr)?;
                        self.data.push(Data { offset, len: segment.data.len() });
                    }
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::Name(names) => self.read_function_names(names)?,
                _ => self.custom.push((section.name(), section.data())),
            },
            _ => {}
        }
        Ok(())
    }

    /// The signature of a function; `None` for an invalid index or type.
    pub fn signature(&self, function: u32) -> Option<&FuncType> {
        self.type_of(*self.functions.get(function as usize)?)
    }

    /// The function type at a type index.
    pub fn type_of(&self, index: u32) -> Option<&FuncType> {
        self.types.get(index as usize)?.as_ref()
    }

    /// Number of imported functions.
    pub fn imported_functions(&self) -> usize {
        self.functions.len().saturating_sub(self.bodies.len())
    }

    /// Width of heap addresses. The replica ignores the width of an imported memory.
    pub fn address_width(&self) -> AddressWidth {
        match self.memories.first() {
            Some(memory) if memory.memory64 => AddressWidth::Bits64,
            _ => AddressWidth::Bits32,
        }
    }

    /// Initial size of the heap, 0 without a heap.
    pub fn initial_pages(&self) -> WasmPages {
        WasmPages(self.memories.first().map_or(0, |memory| memory.initial))
    }

    /// Reads function names, which the replica uses for backtraces. It refuses a module in which
    /// they cannot be read.
    fn read_function_names(
        &mut self,
        names: NameSectionReader<'a>,
    ) -> Result<(), BinaryReaderError> {
        for subsection in names {
            if let Name::Function(functions) = subsection? {
                for function in functions {
                    let Naming { index, name } = function?;
                    self.function_names.push((index, name));
                }
            }
        }
        Ok(())
    }
}
