//! Counters by name, in stable memory.

use std::cell::RefCell;

use ic_stable_structures::{DefaultMemoryImpl, StableBTreeMap};

thread_local! {
    static COUNTERS: RefCell<StableBTreeMap<String, u64, DefaultMemoryImpl>> =
        RefCell::new(StableBTreeMap::init(DefaultMemoryImpl::default()));
}

/// Adds to a counter and returns its new value.
#[ic_cdk::update]
fn add(name: String, amount: u64) -> u64 {
    COUNTERS.with_borrow_mut(|counters| {
        let value = counters.get(&name).unwrap_or_default() + amount;
        counters.insert(name, value);
        value
    })
}

/// Returns the value of a counter.
#[ic_cdk::query]
fn get(name: String) -> Option<u64> {
    COUNTERS.with_borrow(|counters| counters.get(&name))
}

/// Returns the sum of all counters.
#[ic_cdk::query]
fn sum() -> u64 {
    COUNTERS.with_borrow(|counters| counters.values().sum())
}
