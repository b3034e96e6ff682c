//! Empty. `wasi2ic` is used here as a library, and only its program needs
//! `ic-wasm`, which would bring Binaryen's C++ sources into every build.
