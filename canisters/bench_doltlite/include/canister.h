/*
** What DoltLite is told before its own source, in a canister.
**
** The crate's build script defines its options; those here come after and hold.
*/

/* A canister has one thread, and no network: nothing to clone from, no keys, no TLS. */
#undef SQLITE_THREADSAFE
#define SQLITE_THREADSAFE 0
#define DOLTLITE_ENABLE_REMOTES 0

/* Parts of POSIX that WASI's headers hold back until one asks. */
#define _WASI_EMULATED_GETPID
#define _WASI_EMULATED_MMAN
#define _WASI_EMULATED_PROCESS_CLOCKS
#define _WASI_EMULATED_SIGNAL

/* It answers with an error, since there are no pages. Without it, it is known to be missing. */
#undef SQLITE_ENABLE_DBSTAT_VTAB

/* As POSIX has it; see src/shim.rs. */
#define fsync stablebench_fsync
#define rename stablebench_rename
