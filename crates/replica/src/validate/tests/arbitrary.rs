//! Nothing that is uploaded makes the replica panic.

use super::*;

/// A small generator of random numbers (xorshift), so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

fn validate_upload(upload: &[u8]) {
    if let Ok(plain) = decode(upload) {
        let _ = validate(&plain, RULES);
    }
}

#[test]
fn garbage() {
    let mut random = Random(0x5eed);
    for _ in 0..5_000 {
        let mut bytes: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        validate_upload(&bytes);
        let _ = validate(&bytes, RULES);
        bytes.splice(0..0, *b"\0asm\x01\0\0\0");
        validate_upload(&bytes);
        bytes.splice(0..8, *b"\x1f\x8b\x08\0\0\0\0\0\0\0");
        validate_upload(&bytes);
    }
}

#[test]
fn garbage_behind_the_header_is_a_decoding_error() {
    let (code, message) = refusal(b"\0asm\x01\0\0\0\xff\xff");
    assert_eq!(code, ErrorCode::CanisterInvalidWasm);
    let place = "Canister's Wasm module is not valid: Failed to decode wasm module";
    assert!(message.starts_with(&format!("{place}: Error finding code section: ")), "{message}");
}

#[test]
fn modules_with_a_few_bytes_changed() {
    let mut module = wasm(
        r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "stable64_read" (func (param i64 i64 i64)))
            (memory (export "memory") 1) (table (export "table") 4 funcref)
            (elem (i32.const 1) func $f) (elem declare func $f)
            (global $g (mut i64) (i64.const 7)) (global f64 (f64.const 1))
            (func $f (local f32)
                (block (br_table 0 0 0 (i32.const 1)))
                (call_indirect (i32.const 1))
                (if (i64.eqz (global.get $g)) (then (memory.copy
                    (i32.const 0) (i32.const 0) (i32.const 9)))))
            (start $f)
            (export "canister_init" (func $f))
            (export "canister_update a" (func $f))
            (export "canister_query b" (func $reply))
            (data (i32.const 16) "abc") (data "passive"))"#,
    );
    push_custom(&mut module, "icp:public metadata", b"content");
    validate(&module, RULES).expect("good before it is changed");

    let mut random = Random(0xc0ffee);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..50_000 {
        let mut changed = module.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len());
            match random.below(4) {
                0 => changed[at] = random.next() as u8,
                1 => changed[at] ^= 1 << random.below(8),
                2 => drop(changed.remove(at)),
                _ => changed.truncate(at.max(8)),
            }
        }
        match validate(&changed, RULES) {
            Ok(_) => accepted += 1,
            Err(_) => refused += 1,
        }
    }
    // Both ends of the rules are reached.
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}
