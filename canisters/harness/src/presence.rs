//! Which of some ids are there, from an engine that can show its ids in order.
//!
//! Ids asked for and ids there are merged. Where many ids that are there lie between
//! two that are asked for, the walk starts anew at the next one asked for, so the cost
//! is bounded by the number of ids asked for, however dense the rows.

use crate::KeyValue;
use stablebench_protocol::Result;
use stablebench_workload::IdSet;
use std::ops::ControlFlow;

/// Starting a walk costs about as much as walking over this many rows.
const SKIPPED_BEFORE_RESTART: u32 = 64;

/// The smallest of the ids that is there.
pub fn first_present(engine: &mut (impl KeyValue + ?Sized), ids: &IdSet) -> Result<Option<u64>> {
    let mut next = Some(ids.first());
    while let Some(from) = next.take() {
        let mut found = None;
        let mut skipped = 0;
        engine.walk(from, &mut |id| match ids.at_or_after(id) {
            None => ControlFlow::Break(()),
            Some(member) if member == id => {
                found = Some(id);
                ControlFlow::Break(())
            }
            Some(_) if skipped < SKIPPED_BEFORE_RESTART => {
                skipped += 1;
                ControlFlow::Continue(())
            }
            Some(member) => {
                next = Some(member);
                ControlFlow::Break(())
            }
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The smallest of the ids that is not there.
pub fn first_missing(engine: &mut (impl KeyValue + ?Sized), ids: &IdSet) -> Result<Option<u64>> {
    let mut wanted = ids.iter().peekable();
    while let Some(from) = wanted.peek().copied() {
        let mut progress = false;
        let mut skipped = 0;
        engine.walk(from, &mut |id| match wanted.peek() {
            Some(next) if *next == id => {
                wanted.next();
                progress = true;
                skipped = 0;
                ControlFlow::Continue(())
            }
            Some(next) if *next > id && skipped < SKIPPED_BEFORE_RESTART => {
                skipped += 1;
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        })?;
        if !progress {
            return Ok(Some(from));
        }
    }
    Ok(None)
}
