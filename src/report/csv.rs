//! One line a case, with the raw values.

use std::fmt::Write;

use anyhow::Result;

use super::Export;
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
                message.instructions,
                message.charge,
                message.cycles,
                message.heap_pages_changed,
                message.stable_pages_accessed,
                message.stable_pages_written,
            )?;
        }
        Ok(text)
    }
}
