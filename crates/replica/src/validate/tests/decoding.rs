//! Plain and compressed uploads.

use std::borrow::Cow;
use std::io::Write;

use flate2::{Compression, GzBuilder, write::GzEncoder};

use super::*;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

fn decoding_refusal(upload: &[u8]) -> String {
    let refusal = decode(upload).expect_err("broken");
    assert_eq!(refusal.code, ErrorCode::CanisterInvalidWasm);
    let place = "Canister's Wasm module is not valid: ";
    refusal.message.strip_prefix(place).expect("the usual beginning").to_owned()
}

#[test]
fn plain_modules_stay_where_they_are() {
    let module = wasm("(module (func))");
    assert!(matches!(decode(&module), Ok(Cow::Borrowed(plain)) if plain == module));
}

#[test]
fn gzip_is_inflated() {
    let module = wasm("(module (func))");
    assert_eq!(decode(&gzip(&module)).expect("good gzip"), module);
    let mut named = GzBuilder::new()
        .filename("a.wasm")
        .comment("c")
        .extra(*b"ab\x01\x00x")
        .write(Vec::new(), Compression::best());
    named.write_all(&module).expect("writing to memory");
    assert_eq!(decode(&named.finish().expect("in memory")).expect("good gzip"), module);
}

#[test]
fn other_formats() {
    for upload in [&b""[..], b"\0as", b"asm\0 and more", b"\x1f\x8b", b"\x1f\x8b\x07aaaaaaaaaaaa"] {
        assert_eq!(
            decoding_refusal(upload),
            "Failed to decode wasm module: unsupported canister module format"
        );
    }
    assert_eq!(
        decoding_refusal(&gzip(b"")[..15]),
        "Failed to decode wasm module: invalid Wasm module: gzip stream is too short"
    );
}

#[test]
fn size_of_a_plain_module() {
    let mut module = vec![0; 100 << 20];
    module[..8].copy_from_slice(b"\0asm\x01\0\0\0");
    decode(&module).expect("at the limit");
    module.push(0);
    assert_eq!(
        decoding_refusal(&module),
        "Wasm module size of 104857601 exceeds the maximum allowed size of 104857600."
    );
}

#[test]
fn size_of_an_inflated_module() {
    let upload = gzip(&vec![0; 100 << 20]);
    assert_eq!(decode(&upload).expect("at the limit").len(), 100 << 20);
    assert_eq!(
        decoding_refusal(&gzip(&vec![0; (100 << 20) + 1])),
        "Wasm module size of 104857601 exceeds the maximum allowed size of 104857600."
    );
}

#[test]
fn a_wrong_claim_of_the_size() {
    let plain = [7; 1_000];
    let claiming = |size: u32| {
        let mut upload = gzip(&plain);
        let claim = upload.len() - 4;
        upload[claim..].copy_from_slice(&size.to_le_bytes());
        upload
    };
    assert_eq!(decode(&claiming(1_000)).expect("good gzip"), &plain[..]);
    let words = "Failed to decode wasm module: specified uncompressed size";
    // Never inflated beyond the claim and one byte.
    let refused = decoding_refusal(&claiming(10));
    assert_eq!(refused, format!("{words} 10 does not match extracted size 11"));
    let refused = decoding_refusal(&claiming(1_001));
    assert_eq!(refused, format!("{words} 1001 does not match extracted size 1000"));
}

#[test]
fn a_wrong_checksum() {
    let mut upload = gzip(b"abc");
    let crc = upload.len() - 8;
    upload[crc..crc + 4].copy_from_slice(&7_u32.to_le_bytes());
    // 0x352441c2 is the CRC-32 of "abc".
    assert_eq!(
        decoding_refusal(&upload),
        "Failed to decode wasm module: failed to decode compressed Wasm module: \
         CRC32 mismatched: value=891568578, expected=7"
    );
}

#[test]
fn cut_off_streams() {
    let noise: Vec<u8> =
        (0..2_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let whole = gzip(&noise);
    for len in 0..whole.len() {
        decode(&whole[..len]).expect_err("cut off");
    }
    // With a claim that passes, the cut itself is told.
    let mut upload = whole[..whole.len() / 2].to_vec();
    upload.extend(2_000_u32.to_le_bytes());
    let refused = decoding_refusal(&upload);
    assert!(refused.contains("failed to decode compressed Wasm module: "), "{refused}");
}
