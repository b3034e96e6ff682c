/*
** Definitions before DoltLite's own source, in a canister.
**
** The crate's build script defines its options. The definitions here come later and take precedence.
*/

/* A canister has one thread, and no network: nothing to clone from, no keys, no TLS. */
#undef SQLITE_THREADSAFE
#define SQLITE_THREADSAFE 0
#define DOLTLITE_ENABLE_REMOTES 0

/* Parts of POSIX that WASI's headers declare only on request. */
#define _WASI_EMULATED_GETPID
#define _WASI_EMULATED_MMAN
#define _WASI_EMULATED_PROCESS_CLOCKS
#define _WASI_EMULATED_SIGNAL

/* It would return an error, since there are no pages. The harness works without it. */
#undef SQLITE_ENABLE_DBSTAT_VTAB

/* POSIX semantics; see src/sqlite.rs. */
#define fsync stablebench_fsync
#define rename stablebench_rename
