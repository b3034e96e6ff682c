//! A canister imports functions of the System API and nothing else.

use wasmparser::{FuncType, TypeRef, ValType};

use super::refusal::Invalid;
use super::sections::Sections;
use crate::rules::ModuleLimits;
use crate::system_api::names::{AddressWidth, MODULE, SystemCall, Type};

/// Returns the imported functions in order. An imported table or memory passes here: the
/// engine refuses it later, and in other words.
pub(super) fn check(
    sections: &Sections<'_>,
    width: AddressWidth,
    limits: &ModuleLimits,
) -> Result<Vec<SystemCall>, Invalid> {
    let mut calls = Vec::new();
    for import in &sections.imports {
        let (module, name) = (import.module, import.name);
        match import.ty {
            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => {
                let Some(ty) = sections.type_of(ty) else {
                    return Err(refused("Function import doesn't have a function type."));
                };
                let call = find(module, name, width, limits)?;
                let params = val_types(call.signature().params, width);
                let results = val_types(call.signature().results, width);
                let expected = Shape { params: &params, results: &results };
                check_signature(name, expected, ty.into())?;
                calls.push(call);
            }
            TypeRef::Table(_) if name == "table" && module != "env" => {
                return Err(refused("Only tables imported from env.table are allowed."));
            }
            TypeRef::Memory(_) if name == "memory" && module != "env" => {
                return Err(refused("Only memory imported from env.memory is allowed."));
            }
            TypeRef::Table(_) | TypeRef::Memory(_) => {}
            TypeRef::Global(_) => return Err(refused("Importing globals is not allowed.")),
            TypeRef::Tag(_) => return Err(refused("Importing tags is not allowed.")),
        }
    }
    Ok(calls)
}

fn refused(words: impl Into<String>) -> Invalid {
    Invalid::Import(words.into())
}

fn find(
    module: &str,
    name: &str,
    width: AddressWidth,
    limits: &ModuleLimits,
) -> Result<SystemCall, Invalid> {
    let call = SystemCall::from_name(name)
        .filter(|call| width == AddressWidth::Bits32 || !call.signature().only_32_bit)
        .filter(|call| !limits.lacks.contains(call));
    match call {
        Some(call) if module == MODULE => Ok(call),
        Some(_) => Err(refused(format!(
            "Module imports function {name:?} from {module:?}, expected to be imported from \
             one of [{MODULE:?}] instead."
        ))),
        None => Err(refused(format!(
            "Module imports function '{name}' from '{module}' that is not exported by the \
             runtime."
        ))),
    }
}

fn val_types(types: &[Type], width: AddressWidth) -> Vec<ValType> {
    types.iter().map(|ty| ty.val_type(width)).collect()
}

/// Parameters and results of a function.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    pub params: &'a [ValType],
    pub results: &'a [ValType],
}

impl<'a> From<&'a FuncType> for Shape<'a> {
    fn from(ty: &'a FuncType) -> Self {
        Self { params: ty.params(), results: ty.results() }
    }
}

/// Compares parameters and results of a function that is imported or exported by `name`;
/// parameters are told first.
pub(super) fn check_signature(
    name: &str,
    expected: Shape<'_>,
    got: Shape<'_>,
) -> Result<(), Invalid> {
    let params = ("input params", expected.params, got.params);
    let results = ("return type", expected.results, got.results);
    for (part, expected, got) in [params, results] {
        if expected != got {
            let (expected, got) = (type_names(expected), type_names(got));
            return Err(Invalid::Signature(format!(
                "Expected {part} [{expected}] for '{name}', got [{got}]."
            )));
        }
    }
    Ok(())
}

/// Types as the replica prints them. References are nullable: without typed function
/// references there are no others.
fn type_names(types: &[ValType]) -> String {
    let names: Vec<&str> = types
        .iter()
        .map(|ty| match ty {
            ValType::I32 => "I32",
            ValType::I64 => "I64",
            ValType::F32 => "F32",
            ValType::F64 => "F64",
            ValType::V128 => "V128",
            ValType::Ref(reference) if reference.is_extern_ref() => "ExternRefNull",
            ValType::Ref(_) => "FuncRefNull",
        })
        .collect();
    names.join(", ")
}
