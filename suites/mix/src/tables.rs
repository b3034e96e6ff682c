//! The presentation of the suite mix.

use crate::plan::{MESSAGES, MixSuite};
use stablebench_suite::report::Presentation;

impl Presentation for MixSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What does a message of this mix cost in each engine?")
    }

    fn section(&self, name: &str) -> Option<String> {
        (name == MESSAGES).then(|| "Messages, each a transaction".to_owned())
    }
}
