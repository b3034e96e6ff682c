//! Limits of the servers: the most that clients and canisters can make them hold or do.
//!
//! `docs/serving.md` has the same table. Its rows are these doc comments, and a test compares them.

macro_rules! limits {
    ($($(#[doc = $text:literal])+ $name:ident = $value:expr, $unit:ident;)+) => {
        $($(#[doc = $text])+ pub const $name: usize = $value;)+

        #[cfg(test)]
        const ROWS: &[(&str, usize, Unit)] = &[$((concat!($($text),+), $value, Unit::$unit)),+];
    };
}

limits! {
    /// connections of a listener at a time; others wait
    MAX_CONNECTIONS = 2_500, Count;
    /// requests to the Internet Computer's interface at a time
    MAX_REQUESTS = 2_000, Count;
    /// the body of such a request
    MAX_BODY = 5 << 20, Bytes;
    /// an update call
    MAX_CALL = 2 << 20, Bytes;
    /// bodies of more than 64 KiB, of all messages of a subnet that wait or run
    MAX_LARGE_BODIES = 256 << 20, Bytes;
    /// messages that wait for a canister
    MAX_WAITING = 1_000, Count;
    /// calls of a subnet that have not expired
    MAX_CALLS = 500_000, Count;
    /// replies of a subnet that are kept; the oldest are dropped
    MAX_REPLIES = 256 << 20, Bytes;
    /// requests of browsers to canisters that are read or answered at a time; others wait
    MAX_GATEWAY_REQUESTS = 64, Count;
    /// the body of such a request
    MAX_GATEWAY_REQUEST = 2 << 20, Bytes;
    /// a canister's response in parts
    MAX_GATEWAY_RESPONSE = 256 << 20, Bytes;
    /// parts of such a response
    MAX_PARTS = 10_000, Count;
    /// canisters of `serve`
    MAX_CANISTERS = 1_000, Count;
    /// PocketIC: instances at a time
    MAX_INSTANCES = 256, Count;
    /// PocketIC: subnets of an instance, including deleted ones
    MAX_SUBNETS = 256, Count;
    /// PocketIC: canisters of an instance
    MAX_INSTANCE_CANISTERS = 10_000, Count;
    /// PocketIC: the body of a request to the Internet Computer's interface
    MAX_FORWARDED = 4 << 20, Bytes;
    /// PocketIC: JSON of a request
    MAX_JSON = 16 << 20, Bytes;
    /// PocketIC: JSON of more than 64 KiB, of all operations that wait or run; others wait
    MAX_LARGE_JSON = 256 << 20, Bytes;
    /// PocketIC: operations that wait or run
    MAX_OPERATIONS = 2_000, Count;
    /// PocketIC: results that are kept for later; the oldest are dropped
    MAX_RESULTS = 1_000, Count;
    /// PocketIC: these results together
    MAX_RESULT_BYTES = 1 << 30, Bytes;
    /// PocketIC: a blob, packed or unpacked
    MAX_BLOB = 4 << 30, Bytes;
    /// PocketIC: blobs; the oldest are dropped
    MAX_BLOBS = 8 << 30, Bytes;
    /// PocketIC: a stable memory that is read at once
    MAX_STABLE_READ = 4 << 30, Bytes;
    /// PocketIC: HTTP gateways at a time
    MAX_GATEWAYS = 256, Count;
    /// PocketIC: HTTP gateways of an instance
    MAX_INSTANCE_GATEWAYS = 16, Count;
}

#[cfg(test)]
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Bytes,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stablebench_replica::files;

    use super::*;

    fn shown(value: usize, unit: Unit) -> String {
        match unit {
            Unit::Count => {
                let digits = value.to_string();
                let groups = digits.as_bytes().rchunks(3).rev();
                let groups = groups.map(|group| String::from_utf8_lossy(group).into_owned());
                groups.collect::<Vec<_>>().join(" ")
            }
            Unit::Bytes if value.is_multiple_of(1 << 30) => format!("{} GiB", value >> 30),
            Unit::Bytes => format!("{} MiB", value >> 20),
        }
    }

    #[test]
    fn the_documents_list_every_limit() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serving.md");
        let document = files::read_text(&path, 1 << 20).unwrap();
        let (_, table) = document.split_once("\n## Limits\n").unwrap();
        let table = table.split_once("\n## ").map_or(table, |(table, _)| table);
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        let expected: Vec<String> = ROWS
            .iter()
            .map(|(text, value, unit)| format!("| {} | {} |", text.trim(), shown(*value, *unit)))
            .collect();
        assert_eq!(rows, expected, "the table should be:\n{}", expected.join("\n"));
    }
}
