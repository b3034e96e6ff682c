//! The form in which a module is deployed: gzip, so that it fits into one message.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};

/// The module, compressed. Equal modules become equal bytes: the header holds neither a time
/// nor a name.
///
/// # Errors
///
/// None of its own: writing into memory does not fail.
pub fn deployable(wasm: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(wasm)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_deployable_module_is_gzip_of_it_without_a_time() {
        let wasm = b"\0asm\x01\0\0\0".repeat(100);
        let compressed = deployable(&wasm).unwrap();
        assert_eq!(compressed, deployable(&wasm).unwrap());
        assert_eq!(compressed[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&*compressed).read_to_end(&mut back).unwrap();
        assert_eq!(back, wasm);
    }
}
