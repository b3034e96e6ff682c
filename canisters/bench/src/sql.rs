//! The suite sql on the database in stable memory.

use crate::sqlite::DATABASE;
use crate::{Bench, memory};
use stablebench_harness::Sql as _;
use stablebench_protocol::{Error, Result};
use stablebench_suite_sql::FilePart;
use stablebench_suite_sql::canister::{Handle, SqlCanister};

/// The file of the database, as `ic-rusqlite` names it, and of its journal.
const FILE: &str = "./DB/main.db";

impl SqlCanister for Bench {
    fn with_handle(
        &mut self,
        _: bool,
        work: &mut dyn FnMut(Handle<'_>) -> Result<()>,
    ) -> Result<()> {
        self.manage()?;
        self.sqlite.stable().with(|connection| {
            // SAFETY: `rusqlite` is linked with the same SQLite, and the connection is borrowed.
            let handle = unsafe { Handle::new(connection.handle()) };
            work(handle.ok_or(Error::NoRows)?)
        })
    }

    fn write_file(&mut self, part: &FilePart) -> Result<()> {
        self.manage()?;
        let connection = self.sqlite.stable();
        // Mounts the file, whose memory takes the bytes.
        connection.open()?;
        connection.close();
        if part.offset == 0 {
            for ending in ["-journal", "-wal"] {
                // There may be none.
                let _ = std::fs::remove_file(format!("{FILE}{ending}"));
            }
            // SQLite takes the size from the header, and the rest of the last page of memory is free.
            memory::fill(DATABASE);
        }
        memory::write(DATABASE, part.offset, &part.bytes)
    }

    fn read_file(&mut self, offset: u64, bytes: u64) -> Result<(Vec<u8>, u64)> {
        let size = file_bytes(&memory::read(DATABASE, 0, 100));
        let bytes = bytes.min(size.saturating_sub(offset));
        Ok((memory::read(DATABASE, offset, bytes), size))
    }
}

/// Returns the size of a database from its header: bytes 16 and 17 are the size of a page, where 1
/// stands for 65,536, and bytes 28 to 31 the number of pages, all big-endian.
fn file_bytes(header: &[u8]) -> u64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match (header.get(16..18).map(number), header.get(28..32).map(number)) {
        (Some(1), Some(pages)) => pages * 65_536,
        (Some(page), Some(pages)) => pages * page,
        _ => 0,
    }
}
