//! A comparison as text: ratios by section, failures, and a summary.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::Cell;

use super::grid::{Sheet, Style};
use super::number::{Factor, Grouped, Percent};
use crate::compare::{By, Comparison, Failure, Kind, Means, Row, Unit};
use crate::report::Format;
use crate::terminal::{Terminal, json_lines};

/// Returns the comparison in a format; `terminal` is the one on which a table is printed.
pub fn render(found: &Comparison, format: Format, terminal: Terminal) -> Result<String> {
    match format {
        Format::Table => Ok(Text { style: Style::of(terminal) }.render(found)),
        Format::Markdown => Ok(Text { style: Style::MARKDOWN }.render(found)),
        Format::Csv => csv(found),
        Format::Json => Ok(json_lines(found)?),
    }
}

/// Returns the failures of a comparison and its summary, without the ratios.
pub fn verdict(found: &Comparison, style: Style) -> String {
    let text = Text { style };
    let failures = [Kind::Missing, Kind::Ratio, Kind::Average, Kind::Value];
    failures.map(|kind| text.failures(found, kind)).concat() + &summary(found) + "\n"
}

struct Text {
    style: Style,
}

impl Text {
    fn render(&self, found: &Comparison) -> String {
        let mut text = String::new();
        for means in &found.sections {
            let rows = found.rows.iter().filter(|row| Some(&row.section) == means.section.as_ref());
            text += &self.section(found, means, rows);
        }
        if let Some(all) = found.all.as_ref().filter(|_| found.sections.len() > 1) {
            let title = format!("All {} cases", Grouped(all.cases as u64));
            let rows =
                averages(all).map(|(name, ratio)| [name.to_owned(), Factor(ratio).to_string()]);
            text += &self.titled(&title, ["", "ratio"], rows);
        }
        for kind in [Kind::Missing, Kind::Ratio, Kind::Average, Kind::Value] {
            text += &self.failures(found, kind);
        }
        for note in &found.notes {
            let _ = writeln!(text, "{}", self.style.item(&format!("note: {note}")));
        }
        if self.style.markdown && !found.notes.is_empty() {
            text.push('\n');
        }
        text + &summary(found) + "\n"
    }

    fn section<'a>(
        &self,
        found: &Comparison,
        means: &Means,
        rows: impl Iterator<Item = &'a Row>,
    ) -> String {
        let (base, new) = match &found.configurations {
            Some((base, new)) if base != new => (base.as_str(), new.as_str()),
            _ => ("base", "new"),
        };
        let mut lines = Vec::new();
        let mut units = Vec::new();
        for row in rows {
            let mark = match row.unit {
                Unit::Instructions => "",
                Unit::OperationsThatFit => " (how many fit)",
            };
            units.push(row.unit);
            lines.push([
                row.label() + mark,
                Grouped(row.base).to_string(),
                Grouped(row.new).to_string(),
                Factor(row.ratio).to_string(),
            ]);
        }
        for (name, ratio) in averages(means) {
            lines.push([name, "", "", &Factor(ratio).to_string()].map(str::to_owned));
        }
        let of =
            match (units.contains(&Unit::Instructions), units.contains(&Unit::OperationsThatFit)) {
                (_, false) => "instructions",
                (false, true) => "operations that fit into a message",
                (true, true) => "instructions, or operations that fit into a message",
            };
        let title = format!("{}: {of}", means.section.as_deref().unwrap_or_default());
        self.titled(&title, ["", base, new, "ratio"], lines)
    }

    fn failures(&self, found: &Comparison, kind: Kind) -> String {
        let failures: Vec<&Failure> =
            found.failures.iter().filter(|one| one.kind == kind).collect();
        if failures.is_empty() {
            return String::new();
        }
        let rows = failures
            .into_iter()
            .map(|one| [one.name.clone(), one.base.clone(), one.new.clone(), by(one)]);
        self.titled(&heading(found, kind), ["", "base", "new", "difference"], rows)
    }

    fn titled<const N: usize>(
        &self,
        title: &str,
        header: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> String {
        let sheet = Sheet {
            header: header.map(str::to_owned).to_vec(),
            rows: rows.into_iter().map(|row| row.map(Cell::new).to_vec()).collect(),
            lines: false,
        };
        format!("{}\n\n{}\n\n", self.style.heading(title), sheet.render(self.style))
    }
}

fn averages(means: &Means) -> [(&'static str, f64); 2] {
    [("arithmetic average", means.arithmetic), ("geometric average", means.geometric)]
}

fn heading(found: &Comparison, kind: Kind) -> String {
    let factor = |ceiling: Option<f64>| Factor(ceiling.unwrap_or_default());
    match kind {
        Kind::Missing => "Missing, failed, or no longer applicable".to_owned(),
        Kind::Ratio => format!("Above the largest ratio, {}", factor(found.gates.max_ratio)),
        Kind::Average => {
            format!("Sections above the largest average, {}", factor(found.gates.max_average))
        }
        Kind::Value => {
            format!("Differ by more than {} %", found.gates.threshold.unwrap_or_default())
        }
    }
}

fn by(failure: &Failure) -> String {
    match failure.by {
        Some(By::Ratio(ratio)) => Factor(ratio).to_string(),
        Some(By::Percent(percent)) => Percent(percent).to_string(),
        None => String::new(),
    }
}

fn summary(found: &Comparison) -> String {
    let count =
        |kind| Grouped(found.failures.iter().filter(|failure| failure.kind == kind).count() as u64);
    let mut parts = vec![format!("{} cases compared", Grouped(found.rows.len() as u64))];
    if let Some(ceiling) = found.gates.max_ratio {
        parts.push(format!("{} above {}", count(Kind::Ratio), Factor(ceiling)));
    }
    if let Some(ceiling) = found.gates.max_average {
        parts.push(format!("{} sections above {}", count(Kind::Average), Factor(ceiling)));
    }
    let mut text = parts.join(", ");
    let missing = found.failures.iter().filter(|failure| failure.kind == Kind::Missing).count();
    if missing > 0 {
        let _ = write!(text, "; {} missing or failed", Grouped(missing as u64));
    }
    if let Some(threshold) = found.gates.threshold.filter(|_| found.configurations.is_none()) {
        let _ = write!(
            text,
            "; {} values compared, {} differ by more than {threshold} %",
            Grouped(found.compared as u64),
            count(Kind::Value),
        );
        if found.unmatched > 0 {
            let _ = write!(text, "; {} are in only one of them", Grouped(found.unmatched as u64));
        }
    }
    text
}

/// Returns a line for each ratio, mean and failure; its kind comes first.
fn csv(found: &Comparison) -> Result<String> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    lines.write_record([
        "kind",
        "section",
        "name",
        "configuration",
        "new_configuration",
        "unit",
        "base",
        "new",
        "ratio",
        "percent",
    ])?;
    for row in &found.rows {
        let unit = match row.unit {
            Unit::Instructions => "instructions",
            Unit::OperationsThatFit => "operations_that_fit",
        };
        let (base, new) = (row.base.to_string(), row.new.to_string());
        let (section, name) = (row.section.as_str(), row.name.as_str());
        let ratio = row.ratio.to_string();
        lines.write_record([
            "case",
            section,
            name,
            &row.configuration,
            &row.new_configuration,
            unit,
            &base,
            &new,
            &ratio,
            "",
        ])?;
    }
    for means in found.sections.iter().chain(&found.all) {
        let section = means.section.as_deref().unwrap_or("");
        for (name, ratio) in averages(means) {
            let ratio = ratio.to_string();
            lines.write_record(["average", section, name, "", "", "", "", "", &ratio, ""])?;
        }
    }
    for failure in &found.failures {
        let kind = match failure.kind {
            Kind::Missing => "missing",
            Kind::Ratio => "above_ratio",
            Kind::Average => "above_average",
            Kind::Value => "above_threshold",
        };
        let (ratio, percent) = match failure.by {
            Some(By::Ratio(ratio)) => (ratio.to_string(), String::new()),
            Some(By::Percent(percent)) => (String::new(), percent.to_string()),
            None => Default::default(),
        };
        let Failure { name, base, new, .. } = failure;
        lines.write_record([kind, "", name, "", "", "", base, new, &ratio, &percent])?;
    }
    Ok(String::from_utf8(lines.into_inner()?)?)
}
