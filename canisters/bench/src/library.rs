use ic_rusqlite::ffi::sqlite3_compileoption_get;
use stablebench_protocol::SqliteDescription;
use std::ffi::CStr;

/// The SQLite library, asked without a connection: a connection would take stable
/// memory for the manager.
pub fn describe() -> SqliteDescription {
    let option = |index| {
        // SAFETY: SQLite answers any index, with null past its list.
        let name = unsafe { sqlite3_compileoption_get(index) };
        if name.is_null() {
            return None;
        }
        // SAFETY: what is not null is a static string that ends with a zero.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    };
    SqliteDescription {
        version: ic_rusqlite::version().to_owned(),
        compile_options: (0..).map_while(option).collect(),
    }
}
