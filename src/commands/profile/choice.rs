//! The case that was typed, among all that the suites have.
//!
//! A case is typed as `SUITE/SECTION/NAME/COLUMN`. Upper and lower case are the same, and so
//! is all that is neither letter nor digit; digits need not be grouped.

use anyhow::{Context, Result, anyhow, bail};
use clap::{Parser, ValueEnum};

use crate::cli::{Place, ProfileArgs, Suite};
use crate::commands::run::{Planned, plan};
use crate::suites::SUITES;
use crate::suites::command::typed;
use crate::suites::lane::{self, Lane};
use crate::suites::users::{self, Section, task::Task};

/// Cases that are offered where there is none.
const OFFERED: usize = 5;

/// A case, and all that has to be done for it and nothing else.
pub struct Chosen {
    pub title: String,
    pub section: String,
    pub name: String,
    pub column: String,
    pub planned: Planned,
}

/// Where a case stands in a plan.
struct Spot {
    /// Of the store or the lane.
    canister: usize,
    /// Of the case or the step.
    within: usize,
    section: String,
    name: String,
    column: String,
}

/// What is typed for a suite.
#[derive(Parser)]
struct Typed {
    #[command(subcommand)]
    suite: Suite,
}

/// The case that `text` means.
///
/// # Errors
///
/// Where there is none, with the nearest; where it cannot be profiled.
pub fn choose(args: &ProfileArgs, text: &str) -> Result<Chosen> {
    let mut parts = text.trim_matches('/').split('/');
    let suite = suite(parts.next().unwrap_or_default())?;
    let section = parts.next().unwrap_or_default();
    let planned = planned(args, suite, section, parts.next().unwrap_or_default())?;
    let places = places(&planned);
    let wanted = normal(text);
    let titles: Vec<String> = places.iter().map(|place| title(suite, place)).collect();
    let Some(at) = titles.iter().position(|title| normal(title) == wanted) else {
        let titles = match titles.is_empty() {
            true => Vec::new(),
            false => nearest(&wanted, titles),
        };
        bail!(
            "there is no case {text}; the nearest are\n{}stablebench profile --list {suite} prints \
             all",
            titles.iter().map(|title| format!("  {title}\n")).collect::<String>()
        );
    };
    let Some(place) = places.into_iter().nth(at) else {
        bail!("there is no case {text}");
    };
    let title = title(suite, &place);
    let Spot { section, name, column, .. } = &place;
    let (section, name, column) = (section.clone(), name.clone(), column.clone());
    let planned = only(planned, &place).with_context(|| title.clone())?;
    Ok(Chosen { title, section, name, column, planned })
}

/// All cases whose names begin with what was typed, a line each.
pub fn list(args: &ProfileArgs) -> Result<String> {
    let wanted = args.case.as_deref().unwrap_or_default();
    let mut parts = wanted.trim_matches('/').split('/');
    let only = parts.next().filter(|name| !name.is_empty()).map(suite).transpose()?;
    let section = parts.next().unwrap_or_default();
    let suites = SUITES.iter().map(|(name, _)| *name);
    let mut text = String::new();
    for suite in suites.filter(|name| only.is_none_or(|only| only == *name)) {
        let titles = places(&planned(args, suite, section, "")?);
        for title in titles.iter().map(|place| title(suite, place)) {
            if normal(&title).starts_with(&normal(wanted)) {
                text += &format!("{title}\n");
            }
        }
    }
    if text.is_empty() {
        bail!("no case begins with {wanted}");
    }
    Ok(text)
}

fn suite(name: &str) -> Result<&'static str> {
    let found = SUITES.iter().map(|(suite, _)| *suite).find(|suite| normal(suite) == normal(name));
    found.with_context(|| {
        let names: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
        format!(
            "there is no suite {name}; a case is SUITE/SECTION/NAME/COLUMN, and the suites are {}",
            names.join(", ")
        )
    })
}

/// The suite's plan with the options that were typed. Of the users suite, that section's
/// cases, or all where there is none of that name; of its section insert, any number of rows.
fn planned(args: &ProfileArgs, suite: &str, section: &str, name: &str) -> Result<Planned> {
    let mut words = vec!["stablebench".to_owned(), suite.to_owned()];
    let own = |option: &str| args.options.iter().any(|word| word.starts_with(option));
    if suite == users::NAME && !own("--sections") && !own("--as-published") {
        let section = Section::value_variants()
            .iter()
            .map(|section| section.name())
            .find(|name| normal(name) == normal(section))
            .unwrap_or_else(|| Section::All.name());
        words.push(format!("--sections={section}"));
        if section == Section::Insert.name() && !own("--batches") && !own("--at") {
            words.extend(inserted(name));
        }
    }
    words.extend(args.rows.map(|rows| format!("--rows={rows}")));
    words.extend(args.seed.map(|seed| format!("--seed={seed}")));
    words.extend(args.options.iter().cloned());
    let parsed = Typed::try_parse_from(words).map_err(|error| {
        let told = error.render().to_string();
        let told = told.split("\n\n").next().unwrap_or_default();
        anyhow!("{}", told.trim_start_matches("error: ").trim_end())
            .context(format!("the suite {suite} does not take that"))
    })?;
    Ok(plan(&parsed.suite)?.1)
}

/// The options of the section insert by which it has the case `middle 1 000`.
fn inserted(name: &str) -> Vec<String> {
    let name = normal(name);
    let Some((place, rows)) = name.split_once('-') else {
        return Vec::new();
    };
    let known = [Place::Middle, Place::End, Place::Random].map(|place| typed(&place));
    match rows.parse::<u64>() {
        Ok(rows) if known.iter().any(|known| known == place) => {
            vec![format!("--batches={rows}"), format!("--at={place}")]
        }
        _ => Vec::new(),
    }
}

fn places(planned: &Planned) -> Vec<Spot> {
    match planned {
        Planned::Users(plan) => (0..)
            .zip(&plan.stores)
            .flat_map(|(canister, store)| {
                (0..).zip(&store.cases).map(move |(within, case)| Spot {
                    canister,
                    within,
                    section: case.section.name(),
                    name: case.name.clone(),
                    column: store.setting.key(),
                })
            })
            .collect(),
        Planned::Lanes(plan) => (0..)
            .zip(&plan.lanes)
            .flat_map(|(canister, lane)| {
                (0..).zip(&lane.steps).filter_map(move |(within, step)| {
                    let (section, name) = step.case.clone()?;
                    let column = lane.column.key.clone();
                    Some(Spot { canister, within, section, name, column })
                })
            })
            .collect(),
    }
}

fn title(suite: &str, place: &Spot) -> String {
    let Spot { section, name, column, .. } = place;
    let grouped = [suite, section, name, column].map(ungrouped);
    grouped.join("/")
}

/// The plan without all that the case does not need.
fn only(planned: Planned, place: &Spot) -> Result<Planned> {
    Ok(match planned {
        Planned::Users(mut plan) => {
            plan.stores = vec![plan.stores.swap_remove(place.canister)];
            let store = &mut plan.stores[0];
            store.cases = vec![store.cases.swap_remove(place.within)];
            if let Task::UpdateCapacity(_) | Task::QueryCapacity(_) = store.cases[0].task {
                bail!(
                    "it is found by many messages of which none is the case; profile one of them"
                );
            }
            plan.outline.columns = vec![store.setting.column()];
            plan.outline.stores = vec![store.key()];
            plan.outline.each = false;
            // Where instructions go does not depend on what is read back afterwards.
            plan.outline.check_around = true;
            Planned::Users(plan)
        }
        Planned::Lanes(plan) => {
            let mut lanes = plan.lanes;
            let lane = cut(lanes.swap_remove(place.canister), place.within);
            let mut outline = plan.outline;
            outline.each = false;
            outline.columns.clear();
            outline.stores.clear();
            Planned::Lanes(lane::Plan::new(outline, vec![lane]))
        }
    })
}

/// The lane up to a step. Those before it are done too, what they leave is what it finds,
/// but are not measured.
fn cut(mut lane: Lane, last: usize) -> Lane {
    lane.steps.truncate(last + 1);
    let populated = lane.populated;
    // What is measured is no part of what can be taken from the cache.
    let measured = populated > last;
    let mut kept = Vec::new();
    for (at, mut step) in lane.steps.into_iter().enumerate() {
        if at == last {
            (step.phases, step.inspected) = (false, false);
        } else if step.forked {
            continue;
        } else {
            step.as_measured = step.case.take().is_some();
        }
        kept.push(step);
        if at + 1 == populated {
            lane.populated = kept.len();
        }
    }
    if measured {
        lane.populated = kept.len();
    }
    lane.steps = kept;
    lane
}

/// A text as it is compared: lower case, digits together, and hyphens for all that is
/// neither letter nor digit.
fn normal(text: &str) -> String {
    let mut normal = String::new();
    for letter in ungrouped(text).chars() {
        match letter.is_alphanumeric() {
            true => normal.extend(letter.to_lowercase()),
            false if normal.ends_with('-') => {}
            false => normal.push('-'),
        }
    }
    normal.trim_matches('-').to_owned()
}

/// The text with the digits of its numbers together.
fn ungrouped(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    let groups = |at: usize| {
        at > 0
            && matches!(letters[at], ' ' | '\u{a0}' | '\u{202f}' | '_')
            && digit(at - 1)
            && (1..=3).all(|more| digit(at + more))
            && !digit(at + 4)
    };
    (0..letters.len()).filter(|at| !groups(*at)).map(|at| letters[at]).collect()
}

/// Those that are most like what was wanted.
fn nearest(wanted: &str, mut titles: Vec<String>) -> Vec<String> {
    titles.sort_by_cached_key(|title| strsim::levenshtein(wanted, &normal(title)));
    titles.truncate(OFFERED);
    titles
}

#[cfg(test)]
mod tests;
