//! What it costs to keep rows: bytes, heap, and what is written for them.

use super::grid::{Cell, Grid};
use crate::report::heading;
use crate::report::number::{Grouped, Short};
use crate::results::{Measured, Results, Store};

/// Bytes of a wasm page.
const WASM_PAGE: u64 = 65_536;
/// Bytes of a page that the replica counts.
const OS_PAGE: u64 = 4_096;

/// Every populated store.
pub fn stores(results: &Results) -> Grid {
    let header = [
        "store",
        "rows",
        "payload",
        "populate",
        "a row",
        "messages",
        "stored",
        "bytes a row",
        "× payload",
        "virtual",
        "raw",
        "heap",
        "page cache",
    ];
    let rows = results.stores.iter().map(row).collect();
    Grid {
        title: "What the settings hold when populated".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "stored: pages of the database, or nodes of the map; × payload is that against the \
             bytes of the texts. virtual: the memories they are in. raw: stable memory, which is \
             given out in buckets of 8 MiB. heap: what the canister has ever needed of it."
                .to_owned(),
        ],
        lines: false,
    }
}

fn row(store: &Store) -> Vec<Cell> {
    let mut cells = vec![
        match store.name.as_str() {
            "" => Cell::text(heading(&store.column)),
            name => Cell::Text(format!("{}, {name}", heading(&store.column))),
        },
        Cell::text(Grouped(store.rows)),
        Cell::text(Grouped(store.payload.into())),
    ];
    let Some(held) = store.outcome.measured() else {
        cells.extend((0..10).map(|_| Cell::missing(&store.outcome)));
        return cells;
    };
    let rows = store.rows.max(1);
    let bytes = |bytes: u64| Cell::Text(format!("{}B", Short(bytes)));
    let optional = |value: Option<u64>| value.map_or(Cell::Absent, bytes);
    let payload = store.rows * u64::from(store.payload);
    cells.extend([
        Cell::text(Short(held.populate.instructions)),
        Cell::text(Grouped(held.populate.instructions / rows)),
        Cell::text(Grouped(held.populate.messages)),
        bytes(held.stored_bytes),
        Cell::text(Grouped(held.stored_bytes / rows)),
        amplification(held.stored_bytes, payload),
        optional(held.virtual_bytes),
        bytes(held.stable_pages * WASM_PAGE),
        bytes(held.heap_pages * WASM_PAGE),
        match held.sqlite {
            Some(_) => optional(held.cache_bytes),
            None => Cell::Absent,
        },
    ]);
    cells
}

fn amplification(bytes: u64, payload: u64) -> Cell {
    match payload {
        0 => Cell::Absent,
        payload => Cell::Text(format!("{:.2}", bytes as f64 / payload as f64)),
    }
}

/// Bytes written to stable memory against bytes of the texts, for cases that write;
/// nothing where no replica told.
pub fn writes(results: &Results) -> Option<Grid> {
    let mut rows = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    let columns: Vec<&str> = results.columns.iter().map(|column| column.key.as_str()).collect();
    for case in &results.cases {
        let wanted = matches!(case.section.as_str(), "insert" | "transactions" | "work");
        let name = (case.section.as_str(), case.name.as_str());
        if wanted && case.measured().and_then(written).is_some() && !names.contains(&name) {
            names.push(name);
        }
    }
    let shown: Vec<&str> = columns
        .into_iter()
        .filter(|key| {
            names.iter().any(|(section, name)| results.case(section, name, key).is_some())
        })
        .collect();
    for (section, name) in &names {
        let cells = shown.iter().map(|key| {
            let case = results.case(section, name, key);
            match case.and_then(|case| case.measured()).and_then(written) {
                Some((bytes, pages, payload)) => Cell::Text(format!(
                    "{:.2} / {:.2}",
                    bytes as f64 / payload as f64,
                    pages as f64 * OS_PAGE as f64 / payload as f64
                )),
                None => Cell::Absent,
            }
        });
        rows.push([Cell::text(format!("{section}: {name}"))].into_iter().chain(cells).collect());
    }
    let mut header = vec![String::new()];
    header.extend(shown.iter().map(|key| heading(key)));
    (!rows.is_empty()).then(|| Grid {
        title: "Bytes written to stable memory for a byte of text".to_owned(),
        header,
        rows,
        notes: vec![
            "Bytes passed to stable_write, and bytes of the pages of 4 KiB that they touch, each \
             against the bytes of the texts written."
                .to_owned(),
        ],
        lines: false,
    })
}

/// Bytes written, pages written, and bytes of texts that were to be written.
pub(super) fn written(measured: &Measured) -> Option<(u64, u64, u64)> {
    let detail = measured.detail.as_ref()?;
    detail.digest?;
    let inside = detail.cost.inside?;
    let payload = detail.bytes.filter(|bytes| *bytes > 0)?;
    Some((inside.stable_calls?.bytes_written, inside.stable_pages_written, payload))
}
