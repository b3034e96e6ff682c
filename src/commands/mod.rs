//! The commands, each with its options. Commands about one thing share a file. Here is what they share: names for
//! errors, those that are close to one that does not exist.

mod builds;
mod call;
mod canbench;
mod interface;
mod nesting;
mod pocket_ic;
mod profile;
mod replica;
mod results;
mod run;
mod serve;
mod spending;
mod sql;
mod subnet;

pub use builds::{BuildsArgs, ModuleArgs, builds, module};
pub use call::{CallArgs, call};
pub use canbench::{CanbenchArgs, canbench};
pub use pocket_ic::{PocketIcArgs, as_pocket_ic, pocket_ic};
pub use profile::{ProfileArgs, profile};
pub use replica::{CacheArgs, cache};
pub use results::{CompareArgs, MergeArgs, ReportArgs, compare, merge, report};
pub use run::{RunArgs, list, run, run_all, with_run_options};
pub use serve::{ServeArgs, serve};
pub use sql::{SqlCommand, sql_command};

/// The number of names that an error lists.
const OFFERED: usize = 5;
/// The characters of a list of names in an error.
const MAX_LISTED: usize = 60;

/// Lists names for an error: all if they fit, else the closest and the number of the others.
fn listed(wanted: &str, names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let fits = |names: &[&str]| names.join(", ").chars().count() <= MAX_LISTED;
    if fits(&names) {
        return names.join(", ");
    }
    let mut offered = closest(wanted, &names);
    while offered.len() > 1 && !fits(&offered) {
        offered.pop();
    }
    let one: String = offered.iter().flat_map(|name| name.chars()).take(MAX_LISTED).collect();
    let shown = if fits(&offered) { offered.join(", ") } else { one + "…" };
    match names.len() - offered.len() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the names that are closest to `wanted`, the closest first.
fn closest<'n>(wanted: &str, names: &'n [impl AsRef<str>]) -> Vec<&'n str> {
    closest_by(wanted, names, str::to_owned)
}

/// Returns the names that are closest to `wanted` in the form that `form` gives them.
fn closest_by<'n>(
    wanted: &str,
    names: &'n [impl AsRef<str>],
    form: impl Fn(&str) -> String,
) -> Vec<&'n str> {
    let mut names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    names.sort_by_cached_key(|name| strsim::levenshtein(wanted, &form(name)));
    names.truncate(OFFERED);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_an_error_is_short() {
        assert_eq!(listed("x", &["get", "add"]), "get, add");
        let many: Vec<String> = (0..1_000).map(|number| format!("method_{number}")).collect();
        let list = listed("method_77", &many);
        assert!(list.starts_with("method_77, ") && list.ends_with(" and 995 more"), "{list}");
        let long = "n".repeat(1_000);
        assert_eq!(listed("n", &[&long]), format!("{}…", "n".repeat(MAX_LISTED)));
        let list = listed("n", &[&long, &long]);
        assert_eq!(list, format!("{}… and 1 more", "n".repeat(MAX_LISTED)));
    }

    #[test]
    fn the_closest_come_first_and_are_few() {
        let names = ["insert", "insert_many", "remove", "a", "b", "c", "d"];
        assert_eq!(closest("insrt", &names)[0], "insert");
        assert_eq!(closest("insert_mny", &names)[..2], ["insert_many", "insert"]);
        assert_eq!(closest("", &names).len(), OFFERED);
        assert_eq!(closest_by("INSRT", &names, str::to_uppercase)[0], "insert");
        assert!(closest("a", &[""; 0]).is_empty());
    }
}
