//! Calls, forks, saved files, installs and upgrades in any order, on several canisters at once. Each
//! is compared with its model.

use arbitrary::{Result, Unstructured};

use super::machine::{Action, End, Kind, POISON, Script, Version};
use super::pair::Pair;

/// Canisters that live at the same time.
const MAX_CANISTERS: usize = 4;
const STEPS: usize = 40;

/// Replays a sequence.
pub fn call_sequence(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut pairs = vec![Pair::new()];
    for _ in 0..STEPS {
        // The sequence ends when the bytes are too short for another step.
        if input.is_empty() || step(&mut input, &mut pairs).is_err() {
            break;
        }
    }
    for pair in &pairs {
        pair.check();
    }
}

fn step(input: &mut Unstructured<'_>, pairs: &mut Vec<Pair>) -> Result<()> {
    let at = input.choose_index(pairs.len())?;
    let pair = &mut pairs[at];
    match input.int_in_range(0..=15)? {
        0..=5 => pair.update(&script(input)?),
        6 => pair.query(&script(input)?),
        7 => pair.replicated_query(&script(input)?),
        8 => pair.missing_method(),
        9 | 10 => {
            let fork = pair.fork();
            if pairs.len() < MAX_CANISTERS {
                pairs.push(fork);
            } else {
                let other = input.choose_index(pairs.len())?;
                pairs[other] = fork;
            }
        }
        11 => {
            if pairs.len() > 1 {
                pairs.remove(at);
            }
        }
        12 => pair.save_and_load(),
        13 => pair.install(version(input)?, &hook(input)?),
        _ => pair.upgrade(version(input)?, &hook(input)?),
    }
    if input.ratio(1, 4)? {
        // Other canisters have not changed.
        input.choose(pairs)?.check();
    }
    Ok(())
}

fn version(input: &mut Unstructured<'_>) -> Result<Version> {
    Ok(if input.arbitrary()? { Version::First } else { Version::Second })
}

fn script(input: &mut Unstructured<'_>) -> Result<Script> {
    let end = if input.ratio(2, 3)? { End::Reply } else { *input.choose(End::ALL)? };
    let mut actions = Vec::new();
    for _ in 0..input.int_in_range(0..=6)? {
        actions.push(action(input)?);
    }
    Ok(Script { end, actions })
}

fn action(input: &mut Unstructured<'_>) -> Result<Action> {
    let kind = match input.int_in_range(0..=9)? {
        0 => Kind::Grow,
        1 => Kind::StableGrow,
        _ => *input.choose(Kind::ALL)?,
    };
    let a = match kind {
        Kind::Grow | Kind::StableGrow => {
            if input.ratio(3, 4)? {
                input.int_in_range(0..=3)?
            } else {
                *input.choose(&[0xffff, 0x10000, 0xffff_ffff, u64::MAX])?
            }
        }
        Kind::Certify => *input.choose(&[0, 1, 7, 8, 20, 32, 33, 100_000])?,
        // Around the ends of OS pages, Wasm pages and memories.
        Kind::Store | Kind::Load | Kind::Fill if input.ratio(3, 4)? => {
            *input.choose(&[0, 0x1000, 0x1ffc, 0x2000, 0x3008, 0xfffc, 0x1_0000])?
        }
        Kind::Store | Kind::Load | Kind::Fill => {
            *input.choose(&[0x1_fff8, 0x1_fff9, 0x2_0000, 0x3_fff8, 0xffff_fff8, u64::MAX])?
        }
        _ if input.ratio(3, 4)? => *input.choose(&[0, 8, 0xff8, 0xffc, 0x1000, 0x8000])?,
        _ => *input.choose(&[
            0xfff8,
            0xfffc,
            0x1_0000,
            0x2_fff8,
            0x2_fff9,
            500 << 30,
            u64::MAX - 7,
            u64::MAX,
        ])?,
    };
    let b = match kind {
        Kind::Keep if input.ratio(1, 8)? => POISON,
        Kind::Keep | Kind::Store => *input.choose(&[0, 1, 7, 0x1234_5678_9abc_def0, u64::MAX])?,
        _ => input.arbitrary()?,
    };
    Ok(Action { kind, a, b })
}

/// The script of a hook, usually without actions that append to the reply.
fn hook(input: &mut Unstructured<'_>) -> Result<Script> {
    let mut script = script(input)?;
    if input.ratio(3, 4)? {
        script.actions.retain(|action| {
            matches!(
                action.kind,
                Kind::Store
                    | Kind::Keep
                    | Kind::StableWrite
                    | Kind::Certify
                    | Kind::Fill
                    | Kind::Print
                    | Kind::StableCopy
            )
        });
    }
    Ok(script)
}
