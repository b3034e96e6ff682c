//! Counts of events, so that a run can check that each kind occurred often enough.

use std::collections::BTreeMap;
use std::sync::Mutex;

static MET: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::new(BTreeMap::new());

/// Counts an event of a target.
pub fn met(target: &'static str, what: &'static str) {
    *MET.lock().unwrap().entry((target, what)).or_default() += 1;
}

/// The events of a target in this process, and how often they occurred.
#[allow(dead_code, reason = "used by the bounded runs")]
pub fn all_met(target: &str) -> BTreeMap<&'static str, usize> {
    let met = MET.lock().unwrap();
    met.iter().filter(|((of, _), _)| *of == target).map(|((_, what), n)| (*what, *n)).collect()
}
