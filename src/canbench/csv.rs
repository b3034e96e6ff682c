//! Results as CSV, as canbench writes them.

use anyhow::Result;

use super::change::{Entry, Metric, Value};
use super::number;

/// A line for each benchmark and each scope.
pub fn csv(entries: &[Entry]) -> Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut header = vec!["status".to_owned(), "name".to_owned()];
    let metrics = Metric::ALL.map(Metric::name);
    for name in ["scope_calls"].into_iter().chain(metrics) {
        header.extend([name.to_owned(), format!("{name} Δ"), format!("{name} Δ%")]);
    }
    writer.write_record(header)?;
    for entry in entries {
        let status = if entry.is_new() { "new" } else { "" };
        let mut row = vec![status.to_owned(), entry.name()];
        match entry.scope {
            Some(_) => row.extend(cells(entry.calls())),
            None => row.extend([const { String::new() }; 3]),
        }
        row.extend(Metric::ALL.into_iter().flat_map(|metric| cells(entry.value(metric))));
        writer.write_record(row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn cells(value: Value) -> [String; 3] {
    [
        value.now.to_string(),
        value.delta().map(|delta| delta.to_string()).unwrap_or_default(),
        value.percent().map(number::percent).unwrap_or_default(),
    ]
}
