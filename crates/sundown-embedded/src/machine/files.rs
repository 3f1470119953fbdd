//! The files of a volume that come from objects.

use std::collections::BTreeMap;

use sundown_decide::pod::room::Room;
use sundown_driver::lookup::{Content, Holder};
use sundown_model::node::{Files, Refused, Sandbox, Selection};
use sundown_node::File;

use super::DeedFailure;
use super::references::References;
use super::sandbox::FILES_BYTES_MAX;

/// All files of a volume; later sources win.
pub(super) async fn all(
    sandbox: &Sandbox,
    from: &[Files],
    mode: u32,
    room: &mut Room,
    references: &References,
) -> Result<BTreeMap<String, File>, DeedFailure> {
    let mut files = BTreeMap::new();
    for source in from {
        let found = match source {
            Files::ConfigMap(it) => {
                selected(Holder::ConfigMap, sandbox, it, mode, references).await?
            }
            Files::Secret(it) => selected(Holder::Secret, sandbox, it, mode, references).await?,
            Files::Texts(texts) => {
                let texts = texts.iter();
                let texts = texts.map(|(path, it)| {
                    let mode = it.mode.unwrap_or(mode);
                    (path.clone(), file(&it.text, mode))
                });
                texts.collect()
            }
            Files::Token {
                path,
                audience,
                expiration_seconds,
            } => {
                let pod = (&*sandbox.name, sandbox.pod.as_str());
                let audience = audience.as_deref();
                let token =
                    references.token(&sandbox.namespace, pod, audience, *expiration_seconds);
                vec![(path.clone(), file(&token.await?, mode))]
            }
            Files::Authority { path } => vec![(path.clone(), file(references.authority(), mode))],
        };
        // Paid for before the next object is looked up.
        for (path, file) in found {
            room.take(path.len() + file.content.len())
                .map_err(|_| too_large())?;
            files.insert(path, file);
        }
    }
    Ok(files)
}

fn too_large() -> DeedFailure {
    let message =
        format!("the files of all volumes have more than {FILES_BYTES_MAX} bytes together");
    DeedFailure::refused(Refused::VolumesTooLarge, message)
}

async fn selected(
    holder: Holder,
    sandbox: &Sandbox,
    selection: &Selection,
    mode: u32,
    references: &References,
) -> Result<Vec<(String, File)>, DeedFailure> {
    let (name, optional) = (&selection.name, selection.optional);
    let content = references.content(holder, &sandbox.namespace, name, optional);
    let content = content.await?.unwrap_or_default();
    let lack = |failure: DeedFailure| failure.for_lack_of(holder.key(&sandbox.namespace, name));
    pick(content, selection, mode).map_err(lack)
}

/// The chosen keys of an object under their paths.
fn pick(
    mut content: Content,
    selection: &Selection,
    mode: u32,
) -> Result<Vec<(String, File)>, DeedFailure> {
    let Some(items) = &selection.items else {
        let all = content.into_iter();
        return Ok(all
            .map(|(key, content)| (key, File { content, mode }))
            .collect());
    };
    let mut files = Vec::new();
    for (key, path, own_mode) in items {
        let mode = own_mode.unwrap_or(mode);
        match content.remove(key) {
            Some(content) => files.push((path.clone(), File { content, mode })),
            None if selection.optional => {}
            None => {
                let message = format!("references non-existent config key: {key}");
                return Err(DeedFailure::refused(Refused::KeyNotFound, message));
            }
        }
    }
    Ok(files)
}

fn file(text: &str, mode: u32) -> File {
    File {
        content: text.as_bytes().to_vec(),
        mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        Content::from([
            ("a".to_owned(), b"1".to_vec()),
            ("b".to_owned(), b"2".to_vec()),
        ])
    }

    fn selection(items: Option<&[(&str, &str)]>, optional: bool) -> Selection {
        let items = items.map(|items| {
            let items = items.iter();
            items
                .map(|(key, path)| ((*key).to_owned(), (*path).to_owned(), None))
                .collect()
        });
        Selection {
            name: "it".to_owned(),
            items,
            optional,
        }
    }

    fn paths(picked: Result<Vec<(String, File)>, DeedFailure>) -> Vec<String> {
        let picked = picked.expect("all keys are there");
        picked.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn all_keys_or_the_chosen_ones_under_their_paths() {
        assert_eq!(
            paths(pick(content(), &selection(None, false), 0o644)),
            ["a", "b"]
        );
        let chosen = selection(Some(&[("b", "x/y")]), false);
        assert_eq!(paths(pick(content(), &chosen, 0o644)), ["x/y"]);
    }

    #[test]
    fn a_missing_key_is_named_unless_it_may_be_missing() {
        let chosen = [("c", "x")];
        let missing = pick(content(), &selection(Some(&chosen), false), 0o644);
        let Err(DeedFailure::Refused(refusal)) = missing else {
            panic!("it is not there");
        };
        assert_eq!(refusal.message, "references non-existent config key: c");
        let optional = pick(content(), &selection(Some(&chosen), true), 0o644);
        assert_eq!(paths(optional), Vec::<String>::new());
    }
}
