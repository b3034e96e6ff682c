//! Rewritten modules as the host sees them: their properties, and the memories that they share with the
//! host for bookkeeping, the map of touched pages and the tree of a profile.
//!
//! No operator of the canister can access those memories.

use wasmparser::ValType;

use crate::system_api::functions::{AddressWidth, SystemCall};

/// Name of the export of the canister's table.
pub const TABLE: &str = "table";

/// Module name of the imports from the host.
pub const HOST: &str = "stablebench";

/// Indices and types of globals.
pub type Globals = Vec<(u32, ValType)>;
/// Heap addresses and the bytes there.
pub type Data = Vec<(u64, Vec<u8>)>;

/// A rewritten module with the properties that the host needs.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The module.
    pub wasm: Vec<u8>,
    /// Width of heap addresses.
    pub address_width: AddressWidth,
    /// True if the module declares a heap.
    pub has_heap: bool,
    /// Initial pages of the heap.
    pub heap_pages: u64,
    /// Indices and types of the mutable globals, exported as `global N`.
    pub globals: Globals,
    /// Active data segments: heap address and bytes, in order.
    pub data: Data,
    /// True if a function may drop segments, which an instance cannot undo.
    pub drops_segments: bool,
    /// True if the module charges for touched pages, and so has a `page map`.
    pub tracks_pages: bool,
    /// The stable calls, by number.
    pub stable_calls: Vec<SystemCall>,
    /// True if `start` is exported.
    pub has_start: bool,
}

/// A module that passed validation could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The module could not be parsed.
    #[error(transparent)]
    Parse(#[from] wasmparser::BinaryReaderError),
    /// A part of the module could not be encoded again.
    #[error("cannot re-encode the module: {0}")]
    Encode(String),
    /// An operator has no price.
    #[error("operator {operator} in function {function} has no price")]
    Unpriced {
        /// Index of the function.
        function: u32,
        /// Name of the operator.
        operator: String,
    },
    /// The module contains something that validation should have refused.
    #[error("unsupported: {0}")]
    Unsupported(&'static str),
}

impl From<wasm_encoder::reencode::Error> for Error {
    fn from(error: wasm_encoder::reencode::Error) -> Self {
        Self::Encode(error.to_string())
    }
}

/// A map of the Wasm pages that a message has touched, for rules that charge for touching.
///
/// ```text
///   0       charges: instructions for heap pages, not yet subtracted from the counter, i64
///   8       stable pages touched in this message, i64
///   16      stable pages written in this message, i64
///   24      price of touching a page, i64
///   32      price of writing a page, i64; 0 where that is not charged
///   65536   a byte for each Wasm page of stable memory: bit 0 written, bit 1 touched
/// ```
///
/// The host tracks heap pages and adds to `charges` while compiled code runs
/// (`memory/touch.rs`). The actual counter is the module's minus `charges`, so checks compare the
/// module's counter with `charges` instead of zero.
pub mod page_map {
    use wasm_encoder::{InstructionSink, MemArg};

    use crate::memory::Touches;
    use crate::units::{WASM_PAGE, WasmPages};

    /// Offsets in the map.
    pub mod offset {
        /// Charges for heap pages.
        pub const CHARGES: u64 = 0;
        /// Stable pages touched.
        pub const TOUCHED: u64 = 8;
        /// Stable pages written.
        pub const WRITTEN: u64 = 16;
        /// Price of touching a page.
        pub const TOUCH_PRICE: u64 = 24;
        /// Price of writing a page.
        pub const WRITE_PRICE: u64 = 32;
        /// Marks of stable pages.
        pub const MARKS: u64 = 65_536;
    }

    /// Export name of the memory.
    pub const EXPORT: &str = "page map";

    /// Wasm pages of the memory, for a stable memory of at most `stable`.
    pub const fn size(stable: WasmPages) -> u64 {
        (offset::MARKS + stable.get()).div_ceil(WASM_PAGE)
    }

    /// The map in the rewritten module.
    #[derive(Clone, Copy, Debug)]
    pub struct PageMap {
        /// Memory index.
        pub memory: u32,
    }

    impl PageMap {
        /// The memory argument for an offset.
        pub fn at(self, offset: u64) -> MemArg {
            MemArg { offset, align: 0, memory_index: self.memory }
        }

        /// Pushes an i64 field onto the stack.
        pub fn load(self, code: &mut InstructionSink<'_>, offset: u64) {
            code.i32_const(0).i64_load(self.at(offset));
        }
    }

    /// Stable pages that were touched, read from the bytes of a map.
    pub fn stable_touches(map: &[u8]) -> Touches {
        Touches { touched: word(map, offset::TOUCHED), written: word(map, offset::WRITTEN) }
    }

    fn word(map: &[u8], offset: u64) -> u64 {
        let at = offset as usize;
        map.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    }
}

/// Attributes charges to functions, for profiles.
///
/// The bookkeeping uses its own memory and globals and is not metered. The memory contains a tree with
/// a node for each stack of functions that was called:
///
/// ```text
///   0   instructions, i64: charged while the node was the current one
///   8   calls, i64
///   16  frame, i32: the function's index in the uploaded module
///   20  parent, i32: address of a node; the root's is the root
///   24  first child, i32, or 0
///   28  next child of the parent, i32, or 0
///   32  depth, i32: the root's is 0
/// ```
///
/// The root is at 0. Every function calls `enter` at its start and `leave` at its end:
///
/// ```text
///   enter   current.instructions += mark − counter;  mark ← counter;  current ← its child
///   leave   current.instructions += mark − counter;  mark ← counter;  current ← its parent
/// ```
///
/// A missing child is created. Beyond a number of nodes or a depth no child is created: the call is
/// *folded*, and its charges are attributed to its caller. A trap leaves the tree as it is.
pub mod profiled {
    use wasm_encoder::{BlockType, Function, InstructionSink, MemArg, ValType};

    use super::page_map::{self, PageMap};
    use crate::units::WASM_PAGE;

    /// Bytes of a node.
    pub const NODE: u32 = 40;
    /// Largest number of nodes.
    pub const NODES: u32 = 1 << 18;
    /// Depth of the deepest node.
    pub const DEPTH: i32 = 1_000;
    /// Wasm pages of the memory.
    pub const PAGES: u64 = (NODE as u64 * NODES as u64).div_ceil(WASM_PAGE);
    /// Frame of charges for stable pages of 4 KiB at their first write.
    pub const OS_PAGES_FRAME: u32 = u32::MAX;
    /// Frame of charges for Wasm pages of stable memory at their first touch or write.
    pub const STABLE_PAGE_FRAME: u32 = u32::MAX - 1;
    /// Frame of charges for Wasm pages of the heap at their first touch or write.
    pub const HEAP_PAGE_FRAME: u32 = u32::MAX - 2;

    /// Offsets in a node.
    pub mod offset {
        /// Instructions charged while it was the current node.
        pub const INSTRUCTIONS: u64 = 0;
        /// Number of calls.
        pub const CALLS: u64 = 8;
        /// Index of the function.
        pub const FRAME: u64 = 16;
        /// Address of the parent.
        pub const PARENT: u64 = 20;
        /// Address of the first child.
        pub const CHILD: u64 = 24;
        /// Address of the next child of the parent.
        pub const NEXT: u64 = 28;
        /// Depth; the root's is 0.
        pub const DEPTH: u64 = 32;
    }

    /// Names of the exported memory, globals and function.
    pub mod export {
        /// The memory.
        pub const TREE: &str = "profile tree";
        /// Global, i32: address of the current node.
        pub const CURRENT: &str = "profile current";
        /// Global, i64: the counter when the current node became current.
        pub const MARK: &str = "profile mark";
        /// Global, i32: address after the last node.
        pub const END: &str = "profile end";
        /// Global, i64: folded calls that have not returned.
        pub const FOLDED: &str = "profile folded";
        /// Global, i64: all folded calls.
        pub const ALL_FOLDED: &str = "profile all folded";
        /// Function: attributes charges for heap pages to their frame.
        pub const SETTLE_PAGES: &str = "profile settle pages";
    }

    /// Indices of what profiling adds.
    #[derive(Clone, Copy, Debug)]
    pub struct Profiler {
        /// Memory index of the tree.
        pub tree: u32,
        /// Index of the first added global; they are in the order of [`GLOBALS`].
        pub globals: u32,
        /// Function index: enters a frame.
        pub enter: u32,
        /// Function index: leaves the frame.
        pub leave: u32,
        /// Global index of the counter.
        pub counter: u32,
        /// The map that collects charges for heap pages, and the index of the function that moves them
        /// to a frame below the current one.
        pub pages: Option<(PageMap, u32)>,
    }

    /// The added globals: name, type, initial value.
    pub const GLOBALS: [(&str, ValType, i32); 5] = [
        (export::CURRENT, ValType::I32, 0),
        (export::MARK, ValType::I64, 0),
        (export::END, ValType::I32, NODE as i32),
        (export::FOLDED, ValType::I64, 0),
        (export::ALL_FOLDED, ValType::I64, 0),
    ];

    impl Profiler {
        /// Emits a call that enters `frame`.
        pub fn enter(self, code: &mut InstructionSink<'_>, frame: u32) {
            self.settle_pages(code);
            code.i32_const(frame.cast_signed()).call(self.enter);
        }

        /// Emits a call that leaves the frame.
        pub fn leave(self, code: &mut InstructionSink<'_>) {
            self.settle_pages(code);
            code.call(self.leave);
        }

        /// Emits a call that attributes charges for heap pages to the current function, if there are any.
        pub fn settle_pages(self, code: &mut InstructionSink<'_>) {
            if let Some((map, settle)) = self.pages {
                map.load(code, page_map::offset::CHARGES);
                code.i64_const(0).i64_ne().if_(BlockType::Empty).call(settle).end();
            }
        }

        /// `settle_pages()`: subtracts the charges from the counter in a frame of their own, with one
        /// call for each price.
        pub fn settle_pages_function(self, map: PageMap) -> Function {
            use page_map::offset::{CHARGES, TOUCH_PRICE};
            const CHARGED: u32 = 0;
            let mut function = Function::new([(1, ValType::I64)]);
            let mut code = function.instructions();
            let code = &mut code;
            map.load(code, CHARGES);
            code.local_tee(CHARGED).i64_eqz().if_(BlockType::Empty).return_().end();
            code.i32_const(0).i64_const(0).i64_store(map.at(CHARGES));
            code.i32_const(HEAP_PAGE_FRAME.cast_signed()).call(self.enter);
            code.global_get(self.counter).local_get(CHARGED).i64_sub().global_set(self.counter);
            // Entering counted one call, unless it was folded.
            code.global_get(self.folded()).i64_eqz().if_(BlockType::Empty);
            code.global_get(self.current()).global_get(self.current());
            code.i64_load(self.at(offset::CALLS)).local_get(CHARGED);
            map.load(code, TOUCH_PRICE);
            code.i64_div_u().i64_add().i64_const(1).i64_sub().i64_store(self.at(offset::CALLS));
            code.end();
            code.call(self.leave).end();
            function
        }

        fn current(self) -> u32 {
            self.globals
        }

        fn mark(self) -> u32 {
            self.globals + 1
        }

        fn end(self) -> u32 {
            self.globals + 2
        }

        fn folded(self) -> u32 {
            self.globals + 3
        }

        fn all_folded(self) -> u32 {
            self.globals + 4
        }

        fn at(self, offset: u64) -> MemArg {
            MemArg { offset, align: 0, memory_index: self.tree }
        }

        /// Adds the charges since the mark to the current node.
        fn settle(self, code: &mut InstructionSink<'_>) {
            code.global_get(self.current())
                .global_get(self.current())
                .i64_load(self.at(offset::INSTRUCTIONS))
                .global_get(self.mark())
                .global_get(self.counter)
                .i64_sub()
                .i64_add()
                .i64_store(self.at(offset::INSTRUCTIONS))
                .global_get(self.counter)
                .global_set(self.mark());
        }

        /// Changes the number of active folded calls and returns, if there are any.
        fn return_if_folded(self, code: &mut InstructionSink<'_>, change: i64) {
            code.global_get(self.folded()).i64_const(0).i64_ne().if_(BlockType::Empty);
            code.global_get(self.folded()).i64_const(change).i64_add().global_set(self.folded());
            if change > 0 {
                self.count_folded(code);
            }
            code.return_().end();
        }

        fn count_folded(self, code: &mut InstructionSink<'_>) {
            code.global_get(self.all_folded()).i64_const(1).i64_add().global_set(self.all_folded());
        }

        /// `enter(frame)`.
        pub fn enter_function(self) -> Function {
            const FRAME: u32 = 0;
            const CHILD: u32 = 1;
            const BEFORE: u32 = 2;
            let mut function = Function::new([(2, ValType::I32)]);
            let mut code = function.instructions();
            let code = &mut code;
            self.return_if_folded(code, 1);
            self.settle(code);

            code.global_get(self.current()).i32_load(self.at(offset::CHILD)).local_set(CHILD);
            code.block(BlockType::Empty).block(BlockType::Empty).loop_(BlockType::Empty);
            code.local_get(CHILD).i32_eqz().br_if(1);
            code.local_get(CHILD)
                .i32_load(self.at(offset::FRAME))
                .local_get(FRAME)
                .i32_eq()
                .br_if(2);
            code.local_get(CHILD).local_tee(BEFORE);
            code.i32_load(self.at(offset::NEXT)).local_set(CHILD);
            code.br(0).end().end();
            self.make_child(code, FRAME, CHILD);
            code.i32_const(0).local_set(BEFORE).end();

            // Move the child to the front, since it is likely to be called again.
            code.local_get(BEFORE).if_(BlockType::Empty);
            code.local_get(BEFORE).local_get(CHILD).i32_load(self.at(offset::NEXT));
            code.i32_store(self.at(offset::NEXT));
            self.put_first(code, CHILD);
            code.end();

            code.local_get(CHILD).local_get(CHILD).i64_load(self.at(offset::CALLS));
            code.i64_const(1).i64_add().i64_store(self.at(offset::CALLS));
            code.local_get(CHILD).global_set(self.current()).end();
            function
        }

        /// Creates a child of the current node, or folds the call and returns.
        fn make_child(self, code: &mut InstructionSink<'_>, frame: u32, child: u32) {
            code.global_get(self.end()).i32_const((NODE * NODES).cast_signed()).i32_ge_u();
            code.global_get(self.current()).i32_load(self.at(offset::DEPTH));
            code.i32_const(DEPTH).i32_ge_u().i32_or().if_(BlockType::Empty);
            code.i64_const(1).global_set(self.folded());
            self.count_folded(code);
            code.return_().end();

            code.global_get(self.end()).local_tee(child);
            code.i32_const(NODE.cast_signed()).i32_add().global_set(self.end());
            code.local_get(child).local_get(frame).i32_store(self.at(offset::FRAME));
            code.local_get(child).global_get(self.current()).i32_store(self.at(offset::PARENT));
            code.local_get(child);
            code.global_get(self.current()).i32_load(self.at(offset::DEPTH)).i32_const(1).i32_add();
            code.i32_store(self.at(offset::DEPTH));
            self.put_first(code, child);
        }

        /// Makes a node the first child of the current one.
        fn put_first(self, code: &mut InstructionSink<'_>, child: u32) {
            code.local_get(child);
            code.global_get(self.current()).i32_load(self.at(offset::CHILD));
            code.i32_store(self.at(offset::NEXT));
            code.global_get(self.current()).local_get(child).i32_store(self.at(offset::CHILD));
        }

        /// `leave()`.
        pub fn leave_function(self) -> Function {
            let mut function = Function::new([]);
            let mut code = function.instructions();
            let code = &mut code;
            self.return_if_folded(code, -1);
            self.settle(code);
            code.global_get(self.current()).i32_load(self.at(offset::PARENT));
            code.global_set(self.current()).end();
            function
        }

        /// A function with `params` parameters that calls `target` in a frame.
        pub fn framed(self, frame: u32, params: u32, target: u32) -> Function {
            let mut function = Function::new([]);
            let mut code = function.instructions();
            self.enter(&mut code, frame);
            for param in 0..params {
                code.local_get(param);
            }
            code.call(target);
            self.leave(&mut code);
            code.end();
            function
        }
    }
}
