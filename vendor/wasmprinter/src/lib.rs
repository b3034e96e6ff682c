//! Empty. `wasi2ic` is used here as a library, and only its program needs this version of
//! `wasmprinter`, which would bring a third `wasmparser` into every build.
