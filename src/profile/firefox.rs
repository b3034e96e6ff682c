//! A profile for the Firefox Profiler: a sample a stack, weighed with its instructions.
//!
//! The profiler's time is instructions too, a nanosecond each: stacks follow each other in the
//! order of the tree, not in that in which they ran, which no profile tells.

use std::time::SystemTime;

use anyhow::Result;
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, SamplingInterval, Timestamp,
    WeightType,
};

use super::{Flame, Heading};

/// The profile as JSON.
pub fn firefox(flame: &Flame, heading: &Heading) -> Result<String> {
    let interval = SamplingInterval::from_nanos(1);
    // Two profiles of the same are the same.
    let mut profile = Profile::new(&heading.title, SystemTime::UNIX_EPOCH.into(), interval);
    let begin = Timestamp::from_nanos_since_reference(0);
    let process = profile.add_process("stablebench", 0, begin);
    let thread = profile.add_thread(process, 0, begin, true);
    profile.set_thread_name(thread, &heading.command);
    profile.set_thread_samples_weight_type(thread, WeightType::Samples);
    let mut time = 0;
    for (place, node) in flame.nodes.iter().enumerate() {
        let mut names: Vec<usize> = flame.stack(place).collect();
        names.reverse();
        let frames: Vec<FrameInfo> = names
            .into_iter()
            .map(|name| FrameInfo {
                frame: Frame::Label(profile.intern_string(&flame.names[name])),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            })
            .collect();
        let stack = profile.intern_stack_frames(thread, frames.into_iter());
        let mut left = node.own;
        while left > 0 {
            // A weight has 32 bits.
            let weight = i32::try_from(left).unwrap_or(i32::MAX);
            let at = Timestamp::from_nanos_since_reference(time);
            profile.add_sample(thread, at, stack, CpuDelta::ZERO, weight);
            left -= u64::from(weight.unsigned_abs());
            time += u64::from(weight.unsigned_abs());
        }
    }
    Ok(serde_json::to_string(&profile)? + "\n")
}
