//! What targets meet, so that a run can tell whether it met enough.

use std::collections::BTreeMap;
use std::sync::Mutex;

static MET: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::new(BTreeMap::new());

/// Notes that `target` met something.
pub fn met(target: &'static str, what: &'static str) {
    *MET.lock().unwrap().entry((target, what)).or_default() += 1;
}

/// What a target met in this process, and how often.
#[allow(dead_code, reason = "asked for by the bounded runs")]
pub fn all_met(target: &str) -> BTreeMap<&'static str, usize> {
    let met = MET.lock().unwrap();
    met.iter().filter(|((of, _), _)| *of == target).map(|((_, what), n)| (*what, *n)).collect()
}
