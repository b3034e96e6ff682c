//! Empty. `wasi2ic` is used here as a library, and only its tests need `wat`.
