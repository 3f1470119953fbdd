//! A stored object as the bytes that a durable server keeps: the JSON with what is known about it,
//! so that reading it back parses nothing. Checksums and files are the keeper's business.

use std::ops::Range;

use crate::{Revision, Stored};

impl Stored {
    /// Appends all of it to `to`; [`Stored::decode`] reads it back.
    pub fn encode(&self, to: &mut Vec<u8>) {
        put_number(to, self.revision.number());
        for place in [&self.metadata, &self.digits] {
            put_number(to, u64_of(place.start));
            put_number(to, u64_of(place.end));
        }
        put_text(to, self.uid.as_str());
        put_number(to, u64_of(self.labels.len()));
        for (key, value) in &self.labels {
            put_text(to, key);
            put_text(to, value);
        }
        put_number(to, u64_of(self.json.len()));
        to.extend_from_slice(&self.json);
    }

    /// Reads what [`Stored::encode`] wrote and moves `from` behind it; None for anything else.
    pub fn decode(from: &mut &[u8]) -> Option<Self> {
        let revision = Revision::new(number(from)?);
        let metadata = place(from)?;
        let digits = place(from)?;
        let uid = text(from)?.into();
        let label_count = size(from)?;
        // Each label takes at least its two lengths, so a damaged count reserves nothing.
        let mut labels = Vec::with_capacity(label_count.min(from.len() / 16));
        for _ in 0..label_count {
            labels.push((text(from)?.into(), text(from)?.into()));
        }
        let length = size(from)?;
        let json: Box<[u8]> = bytes(from, length)?.into();
        let is_sound = metadata.start <= digits.start
            && digits.end <= metadata.end
            && json.get(metadata.clone())?.ends_with(b"}")
            && json.get(digits.clone())? == revision.to_string().as_bytes();
        is_sound.then_some(Self {
            revision,
            uid,
            json,
            metadata,
            digits,
            labels: labels.into_boxed_slice(),
        })
    }
}

fn u64_of(size: usize) -> u64 {
    u64::try_from(size).expect("a size in memory fits 64 bits")
}

fn put_number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    put_number(to, u64_of(text.len()));
    to.extend_from_slice(text.as_bytes());
}

fn bytes<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let taken = bytes(from, 8)?;
    Some(u64::from_le_bytes(taken.try_into().ok()?))
}

fn size(from: &mut &[u8]) -> Option<usize> {
    usize::try_from(number(from)?).ok()
}

fn place(from: &mut &[u8]) -> Option<Range<usize>> {
    let (start, end) = (size(from)?, size(from)?);
    (start <= end).then_some(start..end)
}

fn text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = size(from)?;
    std::str::from_utf8(bytes(from, length)?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Map, json};

    use crate::{Body, Parts, Revision, Stored};

    #[test]
    fn reads_back_what_it_wrote_and_nothing_that_was_cut() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let body = Body::encode(&Parts {
            api_version: "v1",
            kind: "ConfigMap",
            uid: &"u-1".into(),
            labels: &labels,
            metadata: &json!({ "name": "a", "labels": labels }),
            rest: &Map::new(),
        });
        let stored = body.expect("plain data").stamp(Revision::new(1234));
        let mut bytes = Vec::new();
        stored.encode(&mut bytes);
        assert_eq!(Stored::decode(&mut bytes.as_slice()), Some(stored));
        for length in 0..bytes.len() {
            assert_eq!(Stored::decode(&mut &bytes[..length]), None, "{length}");
        }
    }
}
