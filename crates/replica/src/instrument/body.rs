//! Encodes a function body with its charges.
//!
//! The counter is a global, but charging each run to a global would cost more than many runs do.
//! A function therefore keeps the remaining instructions in a local, and stores them where the
//! global is visible: before calls, and where the function returns.
//!
//! ```text
//!   entry               left ← counter
//!   run of cost n       left ← left − n
//!   function, loop      if left < 0:  counter ← left; host; left ← counter
//!   before a call       counter ← left
//!   after a call        left ← counter
//!   exits               counter ← left
//! ```
//!
//! Charges for touched heap pages are collected outside of the counter while code runs
//! (`page_map`), so under rules that have them a check is `left < charges`.
//!
//! An operator that traps, such as a load out of bounds, leaves an outdated value in the global.
//! [`Metering::Stored`] gives the exact value: it stores each charge in the global. The counts are
//! the same, but it is slower.
//!
//! # Arguments on the stack
//!
//! Functions take arguments of 32 bits on the stack as 64 bits. Compiled code stores the arguments of
//! a call that do not fit into registers. The compiler stores 32 bits and loads 64, for which the
//! processor waits until the store is in its cache: of the time of a `StableBTreeMap`'s inserts, a
//! ninth went by so. Stores and loads of 64 bits do not wait.
//!
//! ```text
//!   call f             call f'         with each such argument extended
//!   (func f (param i32 … i32))         (func f' (param i32 … i64) (local i32) its local ← wrapped)
//! ```
//!
//! A function that is called by anything but its index keeps its type, which others know: one that is
//! exported, in a table or referenced.

use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    BlockType, BranchHint, Function, InstructionSink, MemArg, ValType as LocalType,
};
use wasmparser::{FunctionBody, Operator, ValType};

use super::charges::{ChargeKind, Unpriced, charges, ends_run};
use super::instrumented::Error;
use super::stable::Added;
use crate::rules::Rules;
use crate::system_api::functions::AddressWidth;

/// Location of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metering {
    /// In a local, stored to the global where the counter is visible.
    Local,
    /// In the global at each charge: exact after any trap.
    Stored,
    /// In the global, and attributed to functions: see [`super::profiled`].
    Profiled,
    /// Not counted: for benchmarks of the cost of metering.
    Off,
}

impl Metering {
    /// Returns its name in caches.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Stored => "stored",
            Self::Profiled => "profiled",
            Self::Off => "off",
        }
    }
}

/// An encoded function body.
pub struct Body {
    /// The function.
    pub function: Function,
    /// Hints that the checks rarely branch.
    pub hints: Vec<BranchHint>,
    /// True if it drops a segment.
    pub drops_segments: bool,
}

/// Maps function indices; other indices do not change.
pub struct FunctionMap(pub Vec<u32>);

impl Reencode for FunctionMap {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error<Self::Error>> {
        Ok(self.0[function as usize])
    }
}

/// Context shared by all bodies of a module.
pub struct Bodies<'r> {
    /// Map from old to new function indices.
    pub map: &'r mut FunctionMap,
    /// Indices of what the rewriting adds.
    pub added: &'r Added,
    /// Function: charges the size operand on top of the stack and leaves it there.
    pub charge_size: u32,
    /// Width of heap addresses.
    pub address_width: AddressWidth,
    /// Location of the counter.
    pub metering: Metering,
    /// Prices of operators that differ between rule sets.
    pub rules: Rules,
    /// Functions that take arguments on the stack as 64 bits.
    pub wide: &'r Wide,
}

impl Bodies<'_> {
    /// Encodes the body of function `index`, which has `params` parameters and the results of a
    /// block of type `results`.
    ///
    /// # Errors
    ///
    /// If an operator has no price.
    pub fn encode(
        &mut self,
        index: u32,
        body: &FunctionBody<'_>,
        params: u32,
        results: BlockType,
    ) -> Result<Body, Error> {
        let operators: Vec<Operator<'_>> =
            body.get_operators_reader()?.into_iter().collect::<Result<_, _>>()?;
        let charges =
            charges(&operators, self.address_width, self.rules).map_err(|Unpriced(position)| {
                let debug = format!("{:?}", operators[position]);
                Error::Unpriced {
                    function: index,
                    operator: debug.split([' ', '{']).next().unwrap_or_default().to_owned(),
                }
            })?;

        let mut locals = Vec::new();
        let mut count = params;
        for local in body.get_locals_reader()? {
            let (number, ty) = local?;
            count += number;
            locals.push((number, self.map.val_type(ty)?));
        }
        let mut add = |ty| {
            locals.push((1, ty));
            count += 1;
            count - 1
        };
        let left = (self.metering == Metering::Local).then(|| add(LocalType::I64));
        let grows = operators.iter().any(|op| matches!(op, Operator::MemoryGrow { .. }));
        let address = match self.address_width {
            AddressWidth::Bits32 => LocalType::I32,
            AddressWidth::Bits64 => LocalType::I64,
        };
        let delta = grows.then(|| add(address));
        let copies = operators.iter().any(|op| matches!(op, Operator::MemoryCopy { .. }));
        let copied =
            (copies && self.added.page_map.is_some()).then(|| [add(address), add(address)]);

        let scratch: Vec<(ValType, u32)> = self
            .wide
            .scratch(&operators)
            .into_iter()
            .map(|ty| Ok((ty, add(self.map.val_type(ty)?))))
            .collect::<Result<_, Error>>()?;
        // Each widened parameter, and the local that has its place.
        let tail = self.wide.tail(index).into_iter();
        let narrow: Vec<(u32, u32)> = tail
            .flat_map(|tail| (tail.first..).zip(&tail.params))
            .filter(|(_, ty)| **ty == ValType::I32)
            .map(|(param, _)| (param, add(LocalType::I32)))
            .collect();

        let drops_segments = operators
            .iter()
            .any(|op| matches!(op, Operator::DataDrop { .. } | Operator::ElemDrop { .. }));
        let function = Function::new(locals);
        let mut code = Code { function, hints: Vec::new(), left, stored: false, added: self.added };
        for (param, local) in &narrow {
            code.sink().local_get(*param).i32_wrap_i64().local_set(*local);
        }
        code.load();
        if let Some(profiler) = self.added.profiler {
            // Branches that leave the function leave this block, and so reach its end.
            profiler.enter(&mut code.sink(), index);
            code.sink().block(results);
        }
        let mut charges = charges.into_iter().peekable();
        let mut depth: u32 = 0;
        for (position, operator) in operators.into_iter().enumerate() {
            while let Some(charge) = charges.next_if(|charge| charge.position == position) {
                self.charge(&mut code, charge.kind, &operator);
            }
            if is_seen(&operator, depth) {
                code.store();
            }
            if let Some(profiler) = self.added.profiler {
                match operator {
                    Operator::Return
                    | Operator::ReturnCall { .. }
                    | Operator::ReturnCallIndirect { .. } => profiler.leave(&mut code.sink()),
                    Operator::End if depth == 0 => {
                        code.sink().end();
                        profiler.leave(&mut code.sink());
                    }
                    _ => {}
                }
            }
            match operator {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => depth += 1,
                // The last `end` ends the function.
                Operator::End => depth = depth.saturating_sub(1),
                _ => {}
            }
            if ends_run(&operator) {
                // Another branch may arrive here with a different value.
                code.stored = false;
            }
            let calls = matches!(operator, Operator::Call { .. } | Operator::CallIndirect { .. });
            match (&operator, delta, copied) {
                (Operator::MemoryCopy { .. }, _, Some([from, size])) => {
                    code.sink().local_set(size).local_tee(from).local_get(size);
                    code.function.instruction(&self.map.instruction(operator)?);
                    self.touch(&mut code, from, size);
                }
                (Operator::MemoryGrow { .. }, Some(delta), _) => {
                    code.sink()
                        .local_tee(delta)
                        .memory_grow(self.added.heap)
                        .local_get(delta)
                        .call(self.added.heap_grown);
                }
                _ => {
                    self.wide.pass(&mut code.sink(), &operator, &scratch);
                    let operator = moved(operator, &narrow);
                    code.function.instruction(&self.map.instruction(operator)?);
                }
            }
            if calls {
                code.load();
            }
        }
        Ok(Body { function: code.function, hints: code.hints, drops_segments })
    }

    /// Reads the first byte of what was copied. If it was copied onto itself, the C library of the
    /// real replica's hosts reads the beginning, but that of other processors nothing.
    fn touch(&self, code: &mut Code<'_>, from: u32, size: u32) {
        let byte = MemArg { offset: 0, align: 0, memory_index: self.added.heap };
        let mut code = code.sink();
        code.local_get(size);
        if self.address_width == AddressWidth::Bits64 {
            code.i64_const(0).i64_ne();
        }
        code.if_(BlockType::Empty).local_get(from).i32_load8_u(byte).drop().end();
    }

    fn charge(&self, code: &mut Code<'_>, kind: ChargeKind, operator: &Operator<'_>) {
        match (kind, self.metering) {
            (_, Metering::Off) => {}
            (ChargeKind::Run { cost, check }, _) => {
                if cost > 0 {
                    code.subtract(cost);
                }
                if check {
                    code.check();
                }
            }
            (ChargeKind::Size, _) => {
                // The size of `memory.init` has 32 bits even in a 64-bit module.
                let narrow = self.address_width == AddressWidth::Bits64
                    && matches!(operator, Operator::MemoryInit { .. });
                if narrow {
                    code.sink().i64_extend_i32_u();
                }
                code.store();
                code.sink().call(self.charge_size);
                code.load();
                if narrow {
                    code.sink().i32_wrap_i64();
                }
            }
        }
    }
}

/// Returns `operator` on the local that has the place of its own, if one has.
fn moved<'a>(operator: Operator<'a>, places: &[(u32, u32)]) -> Operator<'a> {
    let place =
        |local: u32| places.iter().find(|(from, _)| *from == local).map_or(local, |(_, to)| *to);
    match operator {
        Operator::LocalGet { local_index } => {
            Operator::LocalGet { local_index: place(local_index) }
        }
        Operator::LocalSet { local_index } => {
            Operator::LocalSet { local_index: place(local_index) }
        }
        Operator::LocalTee { local_index } => {
            Operator::LocalTee { local_index: place(local_index) }
        }
        other => other,
    }
}

/// Returns true if the counter is visible while `operator` executes, or after it if it leaves the
/// function. `depth` is the number of open blocks.
fn is_seen(operator: &Operator<'_>, depth: u32) -> bool {
    match operator {
        Operator::Call { .. }
        | Operator::CallIndirect { .. }
        | Operator::ReturnCall { .. }
        | Operator::ReturnCallIndirect { .. }
        | Operator::Return
        | Operator::Unreachable
        | Operator::MemoryGrow { .. } => true,
        Operator::End => depth == 0,
        Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
            *relative_depth == depth
        }
        Operator::BrTable { targets } => {
            targets.default() == depth || targets.targets().flatten().any(|target| target == depth)
        }
        _ => false,
    }
}

/// The body being encoded.
struct Code<'r> {
    function: Function,
    hints: Vec<BranchHint>,
    /// The local with the remaining instructions, if there is one.
    left: Option<u32>,
    /// True if the global is known to have the same value.
    stored: bool,
    added: &'r Added,
}

impl Code<'_> {
    fn sink(&mut self) -> InstructionSink<'_> {
        self.function.instructions()
    }

    /// Copies the counter to the local.
    fn load(&mut self) {
        if let Some(left) = self.left {
            let counter = self.added.counter;
            self.sink().global_get(counter).local_set(left);
            self.stored = true;
        }
    }

    /// Copies the local to the counter.
    fn store(&mut self) {
        if let Some(left) = self.left
            && !self.stored
        {
            let counter = self.added.counter;
            self.sink().local_get(left).global_set(counter);
            self.stored = true;
        }
    }

    fn subtract(&mut self, cost: u64) {
        self.stored = false;
        let (cost, counter) = (cost.cast_signed(), self.added.counter);
        match self.left {
            Some(left) => self.sink().local_get(left).i64_const(cost).i64_sub().local_set(left),
            None => self.sink().global_get(counter).i64_const(cost).i64_sub().global_set(counter),
        };
    }

    /// Calls the host if the counter is negative.
    fn check(&mut self) {
        let added = self.added;
        let (counter, out_of_instructions) = (added.counter, added.out_of_instructions);
        if let Some(profiler) = added.profiler {
            profiler.settle_pages(&mut self.sink());
        }
        match self.left {
            Some(left) => self.sink().local_get(left),
            None => self.sink().global_get(counter),
        };
        added.push_charges(&mut self.sink());
        self.sink().i64_lt_s();
        self.hints.push(BranchHint {
            branch_func_offset: u32::try_from(self.function.byte_len()).unwrap_or(u32::MAX),
            branch_hint_value: 0,
        });
        self.sink().if_(BlockType::Empty);
        self.store();
        self.sink().call(out_of_instructions);
        self.load();
        self.sink().end();
        self.stored = false;
    }
}

/// Integer arguments in registers of x86-64, besides the two that the engine passes. Other processors
/// have more, but the same module must be rewritten alike everywhere.
const REGISTERS: usize = 4;

/// Most parameters from the first to widen on. A function with more keeps its type, so that rewriting
/// many calls of it does not take long.
const MAX_TAIL: usize = 16;

/// Parameters of a function that begin with the first to widen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tail {
    /// The type of the function.
    ty: u32,
    /// The number of parameters before.
    first: u32,
    /// The types of these and all further parameters: numbers.
    params: Vec<ValType>,
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
    fn tail(&self, function: u32) -> Option<&Tail> {
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
    fn scratch(&self, operators: &[Operator<'_>]) -> Vec<ValType> {
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
    fn pass(
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
