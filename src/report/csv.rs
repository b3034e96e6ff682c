//! One line a case, with the raw values; empty where the replica does not tell one.

use std::fmt::Write;

use anyhow::Result;

use super::Export;
use crate::replica::Inside;
use crate::results::Results;

pub struct Csv;

impl Export for Csv {
    fn export(&self, results: &Results) -> Result<String> {
        let mut text = String::from(
            "setting,at,rows_before,rows_added,payload_bytes,instructions,counter_overhead,\
             message_instructions,message_charge,cycles,heap_pages_changed,\
             stable_pages_accessed,stable_pages_written\n",
        );
        for case in &results.cases {
            let (measured, message) = (&case.measurement, &case.message);
            let inside = |value: fn(&Inside) -> u64| {
                message
                    .inside
                    .as_ref()
                    .map(value)
                    .map(|value| value.to_string())
                    .unwrap_or_default()
            };
            writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{}",
                case.setting,
                case.at,
                results.rows,
                case.rows,
                results.payload,
                measured.instructions,
                measured.counter_overhead,
                inside(|inside| inside.instructions),
                inside(|inside| inside.charge),
                message.cycles,
                inside(|inside| inside.heap_pages_changed),
                inside(|inside| inside.stable_pages_accessed),
                inside(|inside| inside.stable_pages_written),
            )?;
        }
        Ok(text)
    }
}
