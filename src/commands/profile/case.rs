//! A case, measured as its suite does it and profiled.

use anyhow::{Result, bail};

use super::choice::Chosen;
use super::{Found, of};
use crate::cache::Cache;
use crate::commands::run::{empty, needed};
use crate::profile::Profiler;
use crate::progress::Progress;
use crate::replica::embedded::Embedded;
use crate::results::{Measured, Outcome};
use crate::runner::Runner;

/// Measures and profiles the case.
pub fn profile(
    chosen: Chosen,
    whole: bool,
    replica: &Embedded,
    cache: Option<&Cache>,
    progress: &Progress,
) -> Result<Found> {
    let title = chosen.title.clone();
    of(profiled(chosen, whole, replica, cache, progress), &title)
}

fn profiled(
    chosen: Chosen,
    whole: bool,
    replica: &Embedded,
    cache: Option<&Cache>,
    progress: &Progress,
) -> Result<Found> {
    let Chosen { title, section, name, configuration: column, planned } = chosen;
    let (built, missing) = needed(&planned.plan, progress)?;
    let profiler = Profiler::new(replica.clone(), whole);
    let results = empty(&planned, &profiler, &built);
    let runner = Runner::new(&profiler, &built, &planned.plan, progress, None, results)?
        .with_cache(cache)
        .with_missing(missing);
    runner.run(1)?;
    let results = runner.results();
    let measured = match results.case(&section, &name, &column).map(|case| &case.outcome) {
        Some(Outcome::Measured(measured)) => measured,
        Some(Outcome::NotApplicable { reason }) => bail!("it is not applicable: {reason}"),
        Some(Outcome::Failed { reason }) => bail!("it failed: {reason}"),
        None => bail!("it was not measured"),
    };
    let flame = profiler.flame();
    let (counted, charged) = expected(measured, whole);
    if (flame.instructions, flame.all()) != (counted, charged) {
        bail!(
            "the profile has {} of {counted} instructions, {} of {charged} with heap pages: this \
             is a bug",
            flame.instructions,
            flame.all()
        );
    }
    Ok(Found { title, flame: Box::new(flame), tree: None, failed: None })
}

/// Returns the instructions that the profile must contain, without and with those for heap pages.
fn expected(measured: &Measured, whole: bool) -> (u64, u64) {
    let inside = measured.detail.as_ref().and_then(|detail| detail.cost.inside);
    match inside.filter(|_| whole) {
        Some(inside) => (inside.instructions, inside.charge),
        None => (measured.instructions, measured.instructions),
    }
}
