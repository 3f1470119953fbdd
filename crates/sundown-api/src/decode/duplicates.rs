//! Members that a JSON text has twice, by path. The parser of values keeps the last one silently.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// `duplicate field "PATH"` for each; nothing for texts that do not parse.
pub(super) fn find(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let scan = Scan {
        at: String::new(),
        found: &mut found,
    };
    match scan.deserialize(&mut reader) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

struct Scan<'a> {
    at: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(member) = map.next_key::<String>()? {
            let at = if self.at.is_empty() {
                member.clone()
            } else {
                format!("{}.{member}", self.at)
            };
            if !seen.insert(member) {
                let text = format!("duplicate field {at:?}");
                if !self.found.contains(&text) {
                    self.found.push(text);
                }
            }
            map.next_value_seed(Scan {
                at,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        loop {
            let at = format!("{}[{index}]", self.at);
            if list
                .next_element_seed(Scan {
                    at,
                    found: &mut *self.found,
                })?
                .is_none()
            {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn duplicates_are_named_by_path_and_once() {
        let text = br#"{"a":1,"b":[{"c":1,"c":2,"c":3}],"a":2}"#;
        let expect = [r#"duplicate field "b[0].c""#, r#"duplicate field "a""#];
        assert_eq!(find(text), expect);
        assert!(find(b"{\"a\":").is_empty());
    }
}
