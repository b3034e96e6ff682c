//! `candid_parser` is used here to read texts, and only its binding generator needs `convert_case`.
//! This has the same interface, and leaves each name as it is.

/// The case of a name.
pub enum Case {
    Pascal,
    Snake,
}

/// Names that have a case.
pub trait Casing {
    /// Returns the name.
    fn to_case(&self, case: Case) -> String;
}

impl<T: ToString> Casing for T {
    fn to_case(&self, _: Case) -> String {
        self.to_string()
    }
}
