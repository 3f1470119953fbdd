//! `storageVersionHash`: tells clients whether two resources are the same objects in storage.
//!
//! SHA-256 is written out here: the maintained crate asks the processor what it can do, and a pure
//! crate asks nobody. Nobody gains from a collision.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The hash of a group, version and kind, as upstream computes it.
pub(super) fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = sha256(format!("{group}/{version}/{kind}").as_bytes());
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&digest[0].to_be_bytes());
    bytes[4..].copy_from_slice(&digest[1].to_be_bytes());
    STANDARD.encode(bytes)
}

const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

fn sha256(message: &[u8]) -> [u32; 8] {
    let mut state: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        mix(&mut state, block);
    }
    state
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn mix(state: &mut [u32; 8], block: &[u8]) {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for index in 16..64 {
        let (early, late) = (words[index - 15], words[index - 2]);
        let one = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let two = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        let sum = words[index - 16]
            .wrapping_add(one)
            .wrapping_add(words[index - 7]);
        words[index] = sum.wrapping_add(two);
    }
    let mut now = *state;
    for (word, round) in words.iter().zip(ROUNDS) {
        let [a, b, c, d, e, f, g, h] = now;
        let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let first = h.wrapping_add(turned).wrapping_add(chosen);
        let first = first.wrapping_add(round).wrapping_add(*word);
        let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = turned.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        now = [
            first.wrapping_add(second),
            a,
            b,
            c,
            d.wrapping_add(first),
            e,
            f,
            g,
        ];
    }
    for (own, new) in state.iter_mut().zip(now) {
        *own = own.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::{sha256, storage_hash};

    #[test]
    fn is_the_hash_of_the_standard_and_of_upstream() {
        assert_eq!(sha256(b"abc")[..2], [0xba78_16bf, 0x8f01_cfea]);
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(sha256(long)[..2], [0x248d_6a61, 0xd206_38b8]);
        assert_eq!(storage_hash("conf.dev", "v1", "Sun"), "Gc+Jw2zGi4Y=");
    }
}
