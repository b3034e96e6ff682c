//! Functions that take arguments of 32 bits on the stack as 64 bits.
//!
//! Compiled code stores the arguments of a call that do not fit into registers. The compiler stores 32
//! bits and loads 64, for which the processor waits until the store is in its cache: of the time of a
//! `StableBTreeMap`'s inserts, a ninth went by so. Stores and loads of 64 bits do not wait.
//!
//! ```text
//!   call f             call f'         with each such argument extended
//!   (func f (param i32 … i32))         (func f' (param i32 … i64) (local i32) its local ← wrapped)
//! ```
//!
//! A function that is called by anything but its index keeps its type, which others know: one that is
//! exported, in a table or referenced.

use wasm_encoder::InstructionSink;
use wasmparser::{Operator, ValType};

/// Integer arguments in registers of x86-64, besides the two that the engine passes. Other processors
/// have more, but the same module must be rewritten alike everywhere.
const REGISTERS: usize = 4;

/// Most parameters from the first to widen on. A function with more keeps its type, so that rewriting
/// many calls of it does not take long.
const MAX_TAIL: usize = 16;

/// Parameters of a function that begin with the first to widen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The type of the function.
    pub ty: u32,
    /// The number of parameters before.
    pub first: u32,
    /// The types of these and all further parameters: numbers.
    pub params: Vec<ValType>,
}

impl Tail {
    /// Returns the widened part of a type with these parameters, if it has any. What cannot be kept in
    /// a local of its own type is never passed.
    fn of(ty: u32, params: &[ValType]) -> Option<Self> {
        let integers = params.iter().enumerate().filter(|(_, ty)| is_integer(**ty));
        let (first, _) = integers.skip(REGISTERS).find(|(_, ty)| **ty == ValType::I32)?;
        let params = params[first..].to_vec();
        let numbers = [ValType::I32, ValType::I64, ValType::F32, ValType::F64];
        let passed = params.len() <= MAX_TAIL && params.iter().all(|ty| numbers.contains(ty));
        passed.then_some(Self { ty, first: first as u32, params })
    }
}

fn is_integer(ty: ValType) -> bool {
    matches!(ty, ValType::I32 | ValType::I64)
}

/// The widened functions of a module.
#[derive(Clone, Debug, Default)]
pub struct Wide {
    /// By function, imports included.
    tails: Vec<Option<Tail>>,
    /// The types of those, in order and without repetition.
    types: Vec<u32>,
}

impl Wide {
    /// Finds them. `imports` is the number of imported functions, `functions` has the types of the
    /// module's own, `params` the parameters of all types. Functions in `kept` are not widened.
    pub fn of(imports: usize, functions: &[u32], params: &[Vec<ValType>], kept: &[u32]) -> Self {
        let mut tails: Vec<Option<Tail>> = vec![None; imports];
        tails.extend(functions.iter().map(|ty| Tail::of(*ty, params.get(*ty as usize)?)));
        for function in kept {
            if let Some(tail) = tails.get_mut(*function as usize) {
                *tail = None;
            }
        }
        let mut types: Vec<u32> = tails.iter().flatten().map(|tail| tail.ty).collect();
        types.sort_unstable();
        types.dedup();
        Self { tails, types }
    }

    /// The widened parameters of a function.
    pub fn tail(&self, function: u32) -> Option<&Tail> {
        self.tails.get(function as usize)?.as_ref()
    }

    /// The types of widened functions, each with its new parameters. `params` has those of all types.
    pub fn types(&self, params: &[Vec<ValType>]) -> Vec<(usize, Vec<ValType>)> {
        let widened = self.types.iter().filter_map(|ty| {
            let mut params = params.get(*ty as usize)?.clone();
            let first = Tail::of(*ty, &params)?.first as usize;
            for param in params[first..].iter_mut().filter(|param| **param == ValType::I32) {
                *param = ValType::I64;
            }
            Some((*ty as usize, params))
        });
        widened.collect()
    }

    /// The position of a widened function's type in [`Wide::types`].
    pub fn position(&self, function: u32) -> Option<u32> {
        let position = self.types.binary_search(&self.tail(function)?.ty);
        position.ok().map(|position| position as u32)
    }

    fn called(&self, operator: &Operator<'_>) -> Option<&Tail> {
        match operator {
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                self.tail(*function_index)
            }
            _ => None,
        }
    }

    /// The locals that the body of a function needs to pass arguments.
    pub fn scratch(&self, operators: &[Operator<'_>]) -> Vec<ValType> {
        let mut scratch = Vec::new();
        for tail in operators.iter().filter_map(|operator| self.called(operator)) {
            let mut free = scratch.clone();
            for ty in &tail.params {
                match free.iter().position(|other| other == ty) {
                    Some(position) => {
                        free.swap_remove(position);
                    }
                    None => scratch.push(*ty),
                }
            }
        }
        scratch
    }

    /// Widens the arguments on the stack if `operator` calls a widened function. `scratch` has the
    /// locals of [`Wide::scratch`], with their types.
    pub fn pass(
        &self,
        code: &mut InstructionSink<'_>,
        operator: &Operator<'_>,
        scratch: &[(ValType, u32)],
    ) {
        let Some(tail) = self.called(operator) else {
            return;
        };
        let mut free = scratch.to_vec();
        let mut taken = Vec::new();
        for ty in tail.params.iter().rev() {
            if let Some(position) = free.iter().position(|(other, _)| other == ty) {
                let (ty, local) = free.swap_remove(position);
                code.local_set(local);
                taken.push((ty, local));
            }
        }
        for (ty, local) in taken.into_iter().rev() {
            code.local_get(local);
            if ty == ValType::I32 {
                code.i64_extend_i32_u();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ValType::{F64, I32, I64, V128};

    use super::*;

    fn tail(params: &[ValType]) -> Option<(u32, Vec<ValType>)> {
        Tail::of(0, params).map(|tail| (tail.first, tail.params))
    }

    #[test]
    fn the_first_four_integers_are_in_registers() {
        assert_eq!(tail(&[I32; 4]), None);
        assert_eq!(tail(&[I64; 9]), None);
        assert_eq!(tail(&[I32; 5]), Some((4, vec![I32])));
        assert_eq!(tail(&[F64, I32, F64, I64, I64, I64, F64, I32]), Some((7, vec![I32])));
        let mixed = [I32, I32, I32, I32, I64, I32, F64, I64];
        assert_eq!(tail(&mixed), Some((5, vec![I32, F64, I64])));
        assert_eq!(tail(&[I32, I32, I32, I32, I32, V128]), None);
        assert_eq!(tail(&[I32; 20]), Some((4, vec![I32; 16])));
        assert_eq!(tail(&[I32; 21]), None);
    }

    #[test]
    fn known_functions_keep_their_types() {
        let params = [vec![], vec![I32; 6], vec![I64, I64, I64, I64, I32]];
        let wide = Wide::of(2, &[1, 0, 2, 1], &params, &[5]);
        let tails = (0..7).map(|function| wide.tail(function).map(|tail| tail.ty));
        assert!(tails.eq([None, None, Some(1), None, Some(2), None, None]));
        let types = wide.types(&params);
        assert_eq!(types, [(1, vec![I32, I32, I32, I32, I64, I64]), (2, vec![I64; 5])]);
        assert_eq!(
            (wide.position(2), wide.position(4), wide.position(5)),
            (Some(0), Some(1), None)
        );
    }

    #[test]
    fn calls_share_locals() {
        let params = [vec![I32; 6], vec![I32, I32, I32, I32, I32, F64, I64]];
        let wide = Wide::of(0, &[0, 1], &params, &[]);
        let call = |function_index| Operator::Call { function_index };
        let scratch = wide.scratch(&[call(0), Operator::Nop, call(1), call(0)]);
        assert_eq!(scratch, [I32, I32, F64, I64]);
    }
}
