//! Existing names that are close to one that does not exist, for errors.

/// The number of names that an error lists.
const OFFERED: usize = 5;

/// Returns the names that are closest to `wanted`, the closest first.
pub fn closest<'n>(wanted: &str, names: &'n [impl AsRef<str>]) -> Vec<&'n str> {
    closest_by(wanted, names, str::to_owned)
}

/// Returns the names that are closest to `wanted` in the form that `form` gives them.
pub fn closest_by<'n>(
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
    fn the_closest_come_first_and_are_few() {
        let names = ["insert", "insert_many", "remove", "a", "b", "c", "d"];
        assert_eq!(closest("insrt", &names)[0], "insert");
        assert_eq!(closest("insert_mny", &names)[..2], ["insert_many", "insert"]);
        assert_eq!(closest("", &names).len(), OFFERED);
        assert_eq!(closest_by("INSRT", &names, str::to_uppercase)[0], "insert");
        assert!(closest("a", &[""; 0]).is_empty());
    }
}
