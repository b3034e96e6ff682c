//! The choice of a case among those of all suites.
//!
//! A case is written as `SUITE/SECTION/NAME/COLUMN`. Case does not matter, nor do characters that
//! are neither letters nor digits; digits need not be grouped.

use anyhow::{Context, Result, bail};

use super::ProfileArgs;
use crate::closest::closest_by;
use crate::commands::run::Planned;
use crate::suites::{SUITES, normal, title};
use stablebench_suite::Suite;
use stablebench_suite::plan::{Details, Measures, Plan};

/// A case, and a plan that measures nothing else.
pub struct Chosen {
    pub title: String,
    pub section: String,
    pub name: String,
    pub configuration: String,
    pub planned: Planned,
}

/// The place of a case in a plan.
struct Place {
    fixture: usize,
    step: usize,
    section: String,
    name: String,
    configuration: String,
}

/// Returns the case with the name `text`.
///
/// # Errors
///
/// If there is none; the message lists similar ones. If it cannot be profiled.
pub fn choose(args: &ProfileArgs, text: &str) -> Result<Chosen> {
    let mut parts = text.trim_matches('/').split('/');
    let suite = suite(parts.next().unwrap_or_default())?;
    let section = parts.next().unwrap_or_default();
    let planned = planned(args, suite, section, parts.next().unwrap_or_default())?;
    let places = places(&planned.plan);
    let wanted = normal(text);
    let titles: Vec<String> = places.iter().map(|place| place.title(suite)).collect();
    let at = titles.iter().position(|title| normal(title) == wanted);
    let Some(place) = at.and_then(|at| places.into_iter().nth(at)) else {
        let titles = closest_by(&wanted, &titles, normal);
        let options = args.options.join(" ");
        let (with, list) = match options.as_str() {
            "" => (String::new(), String::new()),
            options => (format!(" with {options}"), format!(" -- {options}")),
        };
        bail!(
            "there is no case {text}{with}; the nearest are\n{}stablebench profile --list {}{list} \
             prints all",
            titles.iter().map(|title| format!("  {title}\n")).collect::<String>(),
            suite.name()
        );
    };
    let title = place.title(suite);
    let Place { section, name, configuration: column, .. } = &place;
    let (section, name, column) = (section.clone(), name.clone(), column.clone());
    let planned = only(planned, &place).with_context(|| title.clone())?;
    Ok(Chosen { title, section, name, configuration: column, planned })
}

/// Returns a line for each case that begins with the chosen text.
pub fn list(args: &ProfileArgs) -> Result<String> {
    let wanted = args.case.as_deref().unwrap_or_default();
    let mut parts = wanted.trim_matches('/').split('/');
    let only = parts.next().filter(|name| !name.is_empty()).map(suite).transpose()?;
    let section = parts.next().unwrap_or_default();
    let mut text = String::new();
    for suite in SUITES {
        if only.is_some_and(|only| only.name() != suite.name()) {
            continue;
        }
        let places = places(&planned(args, suite, section, "")?.plan);
        for title in places.iter().map(|place| place.title(suite)) {
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

fn suite(name: &str) -> Result<&'static dyn Suite> {
    let found = SUITES.iter().find(|suite| normal(suite.name()) == normal(name));
    found.copied().with_context(|| {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name()).collect();
        format!(
            "there is no suite {name}; a case is SUITE/SECTION/NAME/COLUMN, and the suites are {}",
            names.join(", ")
        )
    })
}

/// Returns the suite's plan with the chosen options, and those that are needed for the case.
fn planned(
    args: &ProfileArgs,
    suite: &'static dyn Suite,
    section: &str,
    name: &str,
) -> Result<Planned> {
    let mut words = suite.options_of_case(&normal(section), &normal(name), &args.options);
    words.extend(args.rows.map(|rows| format!("--rows={rows}")));
    words.extend(args.seed.map(|seed| format!("--seed={seed}")));
    words.extend(args.options.iter().cloned());
    Planned::of(suite, &words)
}

fn places(plan: &Plan) -> Vec<Place> {
    let mut places = Vec::new();
    for (fixture, of) in plan.fixtures.iter().enumerate() {
        for (step, case) in of.steps.iter().enumerate() {
            if let Some((section, name)) = case.row() {
                places.push(Place {
                    fixture,
                    step,
                    section: section.to_owned(),
                    name: name.to_owned(),
                    configuration: of.configuration.key.clone(),
                });
            }
        }
    }
    places
}

impl Place {
    fn title(&self, suite: &dyn Suite) -> String {
        title(suite, &self.section, &self.name, &self.configuration)
    }
}

/// Returns the plan without everything that the case does not need.
fn only(planned: Planned, place: &Place) -> Result<Planned> {
    let Planned { suite, args, command, mut plan } = planned;
    let mut fixture = plan.fixtures.swap_remove(place.fixture);
    fixture.retain(|at, _| at == place.step);
    for step in &mut fixture.steps {
        step.details = Details::default();
    }
    if fixture.steps.last().is_some_and(|step| matches!(step.measures, Measures::Capacity(_))) {
        bail!("a search for a capacity has many messages, none of which is the case");
    }
    if let Some(step) = fixture.steps.last()
        && step.job.choose(step.operations, args.seed)?.observer().is_some()
    {
        bail!(
            "a transaction is many measurements, one for each statement; profile a call of the \
             canister instead: stablebench profile --wasm bench.wasm --call sql '(\"SELECT 1\", vec {{}})'"
        );
    }
    // The functions in which instructions are spent do not depend on what is read back afterwards.
    let plan = Plan { check_around: true, ..Plan::new(plan.suite, vec![fixture]) };
    Ok(Planned { suite, args, command, plan })
}

#[cfg(test)]
mod tests;
