//! Encodes a function body again with its charges.
//!
//! The counter is a global, but a charge of each run to a global would cost more than
//! many runs do. So a function keeps what is left in a local, and stores it where
//! somebody can see the global: before calls, and where the function is left.
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
//! Charges for touched pages of the heap are collected beside the counter while code runs
//! (`page_map`), so under rules that have them a check is `left < charges`.
//!
//! An operator that traps by itself, as a load out of bounds does, leaves an older value
//! in the global. Whoever must know the exact one takes [`Metering::Stored`], where each
//! charge goes to the global: the same counts, more slowly.

use wasm_encoder::reencode::Reencode;
use wasm_encoder::{BlockType, BranchHint, Function, InstructionSink, ValType};
use wasmparser::{FunctionBody, Operator};

use super::Error;
use super::blocks::{ChargeKind, Unpriced, charges, ends_run};
use super::rewrite::FunctionMap;
use super::stable::Added;
use crate::rules::Rules;
use crate::system_api::names::AddressWidth;

/// Where charges are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metering {
    /// In a local, stored where the counter can be seen.
    Local,
    /// In the global, at each charge: exact after any trap.
    Stored,
    /// Likewise, and by function: see [`super::profiled`].
    Profiled,
    /// Nowhere: for benchmarks of what metering costs.
    Off,
}

/// A function and where its checks branch, which is hardly ever.
pub struct Body {
    /// The function.
    pub function: Function,
    /// The checks.
    pub hints: Vec<BranchHint>,
    /// Whether it drops a segment.
    pub drops_segments: bool,
}

/// What all bodies of a module share.
pub struct Bodies<'r> {
    /// How functions are numbered now.
    pub map: &'r mut FunctionMap,
    /// What the rewriting adds.
    pub added: &'r Added,
    /// Function: charges the size operand on top of the stack and leaves it there.
    pub charge_size: u32,
    /// Width of the heap's addresses.
    pub address_width: AddressWidth,
    /// Where charges are kept.
    pub metering: Metering,
    /// Prices of operators in which rule sets differ.
    pub rules: Rules,
}

impl Bodies<'_> {
    /// Encodes the body of function `index`, which has `params` parameters and returns
    /// what a block of type `results` does.
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
        let left = (self.metering == Metering::Local).then(|| add(ValType::I64));
        let grows = operators.iter().any(|op| matches!(op, Operator::MemoryGrow { .. }));
        let delta = grows.then(|| {
            add(match self.address_width {
                AddressWidth::Bits32 => ValType::I32,
                AddressWidth::Bits64 => ValType::I64,
            })
        });

        let drops_segments = operators
            .iter()
            .any(|op| matches!(op, Operator::DataDrop { .. } | Operator::ElemDrop { .. }));
        let function = Function::new(locals);
        let mut code = Code { function, hints: Vec::new(), left, stored: false, added: self.added };
        code.load();
        if let Some(profiler) = self.added.profiler {
            // Branches that leave the function leave this block, and so pass its end.
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
                // The last one ends the function.
                Operator::End => depth = depth.saturating_sub(1),
                _ => {}
            }
            if ends_run(&operator) {
                // Others may come here, or go from here, with another value.
                code.stored = false;
            }
            let calls = matches!(operator, Operator::Call { .. } | Operator::CallIndirect { .. });
            match (&operator, delta) {
                (Operator::MemoryGrow { .. }, Some(delta)) => {
                    code.sink()
                        .local_tee(delta)
                        .memory_grow(self.added.heap)
                        .local_get(delta)
                        .call(self.added.heap_grown);
                }
                _ => {
                    code.function.instruction(&self.map.instruction(operator)?);
                }
            }
            if calls {
                code.load();
            }
        }
        Ok(Body { function: code.function, hints: code.hints, drops_segments })
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
                // The size of `memory.init` is 32 bits wide in a 64-bit module too.
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

/// Whether somebody can see the counter while `operator` executes, or after it if it
/// leaves the function; `depth` blocks are open around it.
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

/// The body so far.
struct Code<'r> {
    function: Function,
    hints: Vec<BranchHint>,
    /// The local that holds what is left of the counter, if one does.
    left: Option<u32>,
    /// Whether the counter is known to hold the same.
    stored: bool,
    added: &'r Added,
}

impl Code<'_> {
    fn sink(&mut self) -> InstructionSink<'_> {
        self.function.instructions()
    }

    /// The local takes the counter's value.
    fn load(&mut self) {
        if let Some(left) = self.left {
            let counter = self.added.counter;
            self.sink().global_get(counter).local_set(left);
            self.stored = true;
        }
    }

    /// The counter takes the local's value.
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

    /// Calls the host if less than nothing is left.
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
