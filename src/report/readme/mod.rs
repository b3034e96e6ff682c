//! The parts of a Markdown file that are made from the reference runs:
//!
//! ```text
//!   <!-- results: answer -->
//!   what `answer` makes of `results/`
//!   <!-- end -->
//! ```

mod answer;
mod exactness;
mod found;
mod published;

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::open_rule::OpenRule;
use crate::results::Results;

/// What the parts are made from.
pub struct Reference {
    /// By today's rules.
    users: Results,
    /// By the rules of autumn 2025.
    users_2025: Results,
    /// What today's figures are if the open rule is the other way.
    open_rule: OpenRule,
    users_as_published: Results,
    /// A run on a PocketIC server, and the same on the embedded replica.
    users_pocket_ic: Results,
    users_embedded: Results,
    /// Calls, and installs that were refused, as recorded on a PocketIC server.
    recorded: u64,
}

impl Reference {
    /// Reads it from the repository.
    pub fn read(repository: &Path) -> Result<Self> {
        let results = |name: &str| Results::read(&repository.join("results").join(name));
        Ok(Self {
            users: results("users.json")?,
            users_2025: results("users-2025-10.json")?,
            open_rule: OpenRule::read(&repository.join("results/open-rule/users.csv"))?,
            users_as_published: results("users-as-published.json")?,
            users_pocket_ic: results("users-pocket-ic.json")?,
            users_embedded: results("users-embedded.json")?,
            recorded: exactness::recorded(&repository.join("crates/conformance/cases"))?,
        })
    }

    fn part(&self, name: &str) -> Option<Result<String>> {
        Some(match name {
            "answer" => answer::part(&self.users, &self.users_2025, &self.open_rule),
            "found" => found::part(self),
            "published" => published::part(self),
            "exactness" => exactness::part(self),
            _ => return None,
        })
    }
}

/// What repeats a run.
fn again(results: &Results) -> String {
    format!("```sh\n{}\n```", results.command)
}

/// The same text with its parts made anew.
pub fn renewed(text: &str, reference: &Reference) -> Result<String> {
    const BEGIN: &str = "<!-- results: ";
    const END: &str = "<!-- end -->";
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->").context("a comment does not end")?;
        let Some(part) = reference.part(name) else {
            bail!("there is no part {name}");
        };
        let part = part.with_context(|| format!("the part {name}"))?;
        let (_, after) =
            after.split_once(END).with_context(|| format!("the part {name} does not end"))?;
        new += &format!("{before}{BEGIN}{name} -->\n\n{}\n\n{END}", part.trim());
        rest = after;
    }
    Ok(new + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canisters::root;

    #[test]
    fn the_readme_is_made_from_the_committed_results() {
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        let reference = Reference::read(root()).unwrap();
        assert!(renewed(&readme, &reference).unwrap() == readme, "renew it: stablebench readme");
        for name in ["answer", "found", "published", "exactness"] {
            assert_eq!(readme.matches(&format!("<!-- results: {name} -->")).count(), 1, "{name}");
        }
    }

    #[test]
    fn what_is_between_the_marks_is_replaced_and_nothing_else() {
        let reference = Reference::read(root()).unwrap();
        let text = "above\n<!-- results: exactness -->\nold\n<!-- end -->\nbelow\n";
        let new = renewed(text, &reference).unwrap();
        assert!(new.starts_with("above\n<!-- results: exactness -->\n\n"), "{new}");
        assert!(new.ends_with("\n\n<!-- end -->\nbelow\n") && !new.contains("old"), "{new}");
        assert_eq!(renewed(&new, &reference).unwrap(), new);
        assert_eq!(renewed("no parts", &reference).unwrap(), "no parts");
        let error = |text| format!("{:#}", renewed(text, &reference).unwrap_err());
        assert_eq!(error("<!-- results: nothing -->\n<!-- end -->"), "there is no part nothing");
        assert_eq!(error("<!-- results: found -->\n"), "the part found does not end");
    }
}
