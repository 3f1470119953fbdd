//! A write that stands in a file.

use sundown_model::Write;

fn main() {
    let _: Write = serde_json::from_str(r#"{"Finish": {"at": {}}}"#).unwrap();
}
