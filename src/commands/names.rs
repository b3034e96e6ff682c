//! Names of the canisters of a command, which arguments use in place of ids that are not known yet.

use anyhow::{Result, bail, ensure};
use stablebench_replica::Principal;

use crate::closest::listed;

/// Names of canisters, and their ids.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<(String, Principal)>);

impl Names {
    pub fn add(&mut self, name: &str, id: Principal) {
        self.0.push((name.to_owned(), id));
    }

    /// The name of a canister, or its id in text.
    pub fn of(&self, id: &Principal) -> String {
        let known = self.0.iter().find(|(_, known)| known == id);
        known.map_or_else(|| id.to_text(), |(name, _)| name.clone())
    }

    /// Returns the id of the only canister with a name.
    ///
    /// # Errors
    ///
    /// If there is none, or several.
    pub fn id(&self, name: &str) -> Result<Principal> {
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, id)| *id);
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => {
                bail!("several canisters are called {name}; give them names: --with NAME=FILE")
            }
            (None, _) => {
                let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
                bail!("there is no canister {name}; there is {}", listed(name, &names))
            }
        }
    }

    /// Replaces `{NAME}`, but not [`NUMBER`], in the quoted texts of Candid by the id of that canister.
    ///
    /// # Errors
    ///
    /// If a principal is `{NAME}` and there is no such canister.
    pub fn fill(&self, candid: &str) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), candid);
        let (mut quoted, mut escaped) = (false, false);
        while let Some(letter) = rest.chars().next() {
            if quoted
                && letter == '{'
                && let Some(end) = rest.find('}')
                && named_by(&rest[1..end])
                && &rest[1..end] != NUMBER
            {
                let name = &rest[1..end];
                // Braces in other texts can be anything.
                let known = self.0.iter().any(|(known, _)| known == name);
                if known || filled.trim_end_matches('"').trim_end().ends_with("principal") {
                    filled += &self.id(name)?.to_text();
                    rest = &rest[end + 1..];
                    continue;
                }
            }
            if letter == '"' && !escaped {
                quoted = !quoted;
            }
            escaped = letter == '\\' && !escaped;
            filled.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
        Ok(filled)
    }
}

/// The placeholder of `--repeat`: `{i}` is the number of the call. No canister may have this name.
const NUMBER: &str = "i";

/// Splits `NAME=CANISTER` into the name, if there is one, and the canister.
///
/// # Errors
///
/// If the name is that of a number.
pub fn named(word: &str) -> Result<(Option<&str>, &str)> {
    match word.split_once('=') {
        Some((name, canister)) if named_by(name) => {
            ensure!(
                name != NUMBER,
                "{word}: {{i}} is the number of a call with --repeat; choose another name than i"
            );
            Ok((Some(name), canister))
        }
        _ => Ok((None, word)),
    }
}

/// True if a word can be the name of a canister.
fn named_by(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_quotes_become_ids() {
        let mut names = Names::default();
        let (bank, shop) = (Principal::from_slice(&[1]), Principal::from_slice(&[2]));
        names.add("bank", bank);
        names.add("shop", shop);
        names.add("shop", bank);
        let text =
            "(record { bank = principal \"{bank}\"; a = \"\\\"{bank}.example {no}\" }, {bank})";
        let expected = text.replace("\"{bank}\"", &format!("\"{bank}\""));
        let expected = expected.replace("{bank}.", &format!("{bank}."));
        assert_eq!(names.fill(text).unwrap(), expected);
        let error = |text| names.fill(text).unwrap_err().to_string();
        assert!(error("principal \"{bnak}\"").contains("no canister bnak; there is bank, shop"));
        assert!(error("(\"{shop}\")").contains("several canisters are called shop"));
        assert_eq!(named("a=b.wasm").unwrap(), (Some("a"), "b.wasm"));
        assert_eq!(named("./a=b.wasm").unwrap(), (None, "./a=b.wasm"));
        assert!(named("i=b.wasm").unwrap_err().to_string().contains("another name than i"));
        // The name of a file.
        names.add("i", bank);
        assert_eq!(names.fill("(principal \"{i}\")").unwrap(), "(principal \"{i}\")");
        assert_eq!(names.of(&shop), "shop");
    }
}
