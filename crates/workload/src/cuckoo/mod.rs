//! The cuckoo suite's work: items in the order of their keys, and lookups in a random one.
//!
//! * [`items`]: keys and values;
//! * [`order`]: the random order;
//! * [`mod@script`]: the same work in SQL;
//! * [`model`]: what it must find.

pub mod items;
pub mod model;
pub mod order;
pub mod script;

pub use items::Items;
pub use model::CuckooModel;
pub use order::Order;
pub use script::{CREATE, script};

use stablebench_protocol::{Cuckoo, CuckooTask, Part};
use std::ops::Range;

/// The operations of a part.
pub fn operations(part: &Part) -> Range<u64> {
    part.from..part.from.saturating_add(part.count)
}

/// The keys that a part is about, in its order. A lookup past the last item begins the
/// same order again.
pub fn keys(part: &Part, job: &Cuckoo) -> Vec<u64> {
    let items = Items::new(job, part.seed);
    let order = Order::new(job.items, part.seed);
    let operations = operations(part);
    match job.task {
        CuckooTask::Build => operations.map(|index| items.key(index)).collect(),
        CuckooTask::Hit(_) => operations.map(|index| items.key(order.place(index))).collect(),
        CuckooTask::Miss(_) => operations.map(|index| items.absent(order.place(index))).collect(),
    }
}
