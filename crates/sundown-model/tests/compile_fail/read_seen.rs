//! A proof of observation that stands in a file.

use sundown_model::Seen;

fn main() {
    let _: Seen = serde_json::from_str(r#"{"key": {}, "uid": "made-up", "rv": 1}"#).unwrap();
}
