//! The bytes of one record: an object, a log entry, the base of the log. Each carries its checksum;
//! where records lie and which must be there is left to the recovery.

use std::sync::Arc;

use jiff::Timestamp;
use sundown_model::{ObjectKey, Resource};
use sundown_store::{Revision, Stored};
use xxhash_rust::xxh3::Xxh3;

/// Opens every log record, so that it can be found in the raw bytes of a journal.
pub(crate) const LOG_MAGIC: &[u8; 8] = b"SD\xf5log\x00\x01";
const BASE_MAGIC: &[u8; 8] = b"SD\xf5bas\x00\x01";
const FRAME_BYTES: usize = 24;
const PARTS_MAX: usize = 4;

/// The checksum of a set of objects: it does not depend on their order, so a write changes it by
/// what it takes away and what it adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub count: u64,
    pub bits: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, object: u64) {
        self.count = self.count.wrapping_add(1);
        self.bits ^= object;
    }

    pub(crate) fn take(&mut self, object: u64) {
        self.count = self.count.wrapping_sub(1);
        self.bits ^= object;
    }
}

/// What an entry of the log did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Delete,
    Put,
    /// No object: the revisions before it, back to the last entry, are never given.
    Skip,
}

/// One entry of the log. The new state is not in it: it is what the next entry of the same key took
/// away, or the live object.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) revision: Revision,
    /// The first revision of the group that it was written with: all before it was synced.
    pub(crate) group: Revision,
    pub(crate) at: Timestamp,
    pub(crate) key: ObjectKey,
    pub(crate) change: Change,
    pub(crate) prev: Option<Arc<Stored>>,
    /// The state after it.
    pub(crate) sum: Sum,
}

/// Where a log begins that has no entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) revision: Revision,
    pub(crate) sum: Sum,
}

/// The key of an object; sorts by resource, then namespace, then name.
pub(crate) fn object_key(key: &ObjectKey) -> Vec<u8> {
    let parts = [
        key.resource.group(),
        key.resource.plural(),
        key.namespace_str(),
        &*key.name,
    ];
    parts.join("\0").into_bytes()
}

/// Reads an object's key; `last` lends its resource if it is the same one.
pub(crate) fn read_object_key(bytes: &[u8], last: Option<&Resource>) -> Option<ObjectKey> {
    let text = std::str::from_utf8(bytes).ok()?;
    let parts: Vec<&str> = text.splitn(PARTS_MAX, '\0').collect();
    let [group, plural, namespace, name] = parts[..] else {
        return None;
    };
    let same = last.filter(|it| it.group() == group && it.plural() == plural);
    Some(ObjectKey {
        resource: same.map_or_else(|| Resource::new(group, plural), Clone::clone),
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: name.into(),
    })
}

/// The value of an object, and its checksum, which covers the key too.
pub(crate) fn object(key: &[u8], stored: &Stored) -> (Vec<u8>, u64) {
    let mut value = vec![0; 8];
    stored.encode(&mut value);
    let sum = object_sum(key, &value[8..]);
    value[..8].copy_from_slice(&sum.to_le_bytes());
    (value, sum)
}

/// Reads the value of an object; None when its checksum is wrong.
pub(crate) fn read_object(key: &[u8], value: &[u8]) -> Option<(Stored, u64)> {
    let (sum, mut content) = value.split_at_checked(8)?;
    let sum = u64::from_le_bytes(sum.try_into().ok()?);
    if object_sum(key, content) != sum {
        return None;
    }
    let stored = Stored::decode(&mut content)?;
    content.is_empty().then_some((stored, sum))
}

impl Entry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::with_capacity(256);
        for number in [self.revision.number(), self.group.number()] {
            rest.extend_from_slice(&number.to_le_bytes());
        }
        rest.extend_from_slice(&self.at.as_nanosecond().to_le_bytes());
        put_sum(&mut rest, self.sum);
        rest.push(match self.change {
            Change::Delete => 0,
            Change::Put => 1,
            Change::Skip => 2,
        });
        let key = object_key(&self.key);
        let key_length = u32::try_from(key.len()).expect("a key is short");
        rest.extend_from_slice(&key_length.to_le_bytes());
        rest.extend_from_slice(&key);
        if let Some(prev) = &self.prev {
            prev.encode(&mut rest);
        }
        frame(LOG_MAGIC, &rest)
    }

    pub(crate) fn decode(value: &[u8], last: Option<&Resource>) -> Option<Self> {
        let mut rest = unframe(LOG_MAGIC, value)?;
        let from = &mut rest;
        let (revision, group) = (Revision::new(number(from)?), Revision::new(number(from)?));
        let nanoseconds = i128::from_le_bytes(take(from, 16)?.try_into().ok()?);
        let sum = read_sum(from)?;
        let change = match take(from, 1)? {
            [0] => Change::Delete,
            [1] => Change::Put,
            [2] => Change::Skip,
            _ => return None,
        };
        let key_length = u32::from_le_bytes(take(from, 4)?.try_into().ok()?);
        let key = read_object_key(take(from, usize::try_from(key_length).ok()?)?, last)?;
        let prev = if from.is_empty() {
            None
        } else {
            Some(Arc::new(Stored::decode(from)?))
        };
        Some(Self {
            revision,
            group,
            at: Timestamp::from_nanosecond(nanoseconds).ok()?,
            key,
            change,
            prev,
            sum,
        })
    }

    /// The group of a record that begins here, if it is whole.
    pub(crate) fn group_at(raw: &[u8]) -> Option<Revision> {
        let mut rest = unframe(LOG_MAGIC, raw)?;
        number(&mut rest)?;
        number(&mut rest).map(Revision::new)
    }
}

impl Base {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut rest = self.revision.number().to_le_bytes().to_vec();
        put_sum(&mut rest, self.sum);
        frame(BASE_MAGIC, &rest)
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let mut rest = unframe(BASE_MAGIC, value)?;
        Some(Self {
            revision: Revision::new(number(&mut rest)?),
            sum: read_sum(&mut rest)?,
        })
    }
}

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

fn object_sum(key: &[u8], content: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(key);
    hash.update(content);
    hash.digest()
}

fn frame(magic: &[u8], rest: &[u8]) -> Vec<u8> {
    let length = u64::try_from(rest.len()).expect("a size in memory fits 64 bits");
    let mut framed = Vec::with_capacity(FRAME_BYTES + rest.len());
    framed.extend_from_slice(magic);
    framed.extend_from_slice(&checksum(rest).to_le_bytes());
    framed.extend_from_slice(&length.to_le_bytes());
    framed.extend_from_slice(rest);
    framed
}

/// What stands in a frame at the beginning of `bytes`; None unless it is whole.
fn unframe<'a>(magic: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let mut from = bytes.strip_prefix(magic)?;
    let sum = number(&mut from)?;
    let length = usize::try_from(number(&mut from)?).ok()?;
    let rest = from.get(..length)?;
    (checksum(rest) == sum).then_some(rest)
}

fn put_sum(to: &mut Vec<u8>, sum: Sum) {
    to.extend_from_slice(&sum.count.to_le_bytes());
    to.extend_from_slice(&sum.bits.to_le_bytes());
}

fn read_sum(from: &mut &[u8]) -> Option<Sum> {
    let (count, bits) = (number(from)?, number(from)?);
    Some(Sum { count, bits })
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn number(from: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(from, 8)?.try_into().ok()?))
}
