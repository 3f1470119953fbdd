//! The file that lets `kubectl` in: rendered from an identity, written so that nobody else can read
//! it. Where it lies is the caller's choice.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::Identity;
use crate::identity::random_hex;

/// What a kubeconfig proves the administrator's identity with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Token,
    Certificate,
}

impl Identity {
    /// A kubeconfig for the server at `url`, with everything embedded.
    pub fn kubeconfig(&self, url: &str, credential: Credential) -> String {
        let ca = STANDARD.encode(self.ca_pem());
        let user = match credential {
            Credential::Token => format!("    token: {}\n", self.token()),
            Credential::Certificate => format!(
                "    client-certificate-data: {}\n    client-key-data: {}\n",
                STANDARD.encode(&self.admin().certificate_pem),
                STANDARD.encode(&self.admin().key_pem),
            ),
        };
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: sundown\n\
             clusters:\n\
             - name: sundown\n  cluster:\n    server: {url}\n    certificate-authority-data: {ca}\n\
             users:\n\
             - name: sundown-admin\n  user:\n{user}\
             contexts:\n\
             - name: sundown\n  context:\n    cluster: sundown\n    user: sundown-admin\n    namespace: default\n",
        )
    }
}

/// Writes a file that only its owner may read, whole or not at all.
///
/// Guarantees: a reader sees the old content or the new one; the mode is 0600 from the first byte on.
pub fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let mut name = path
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_owned();
    name.push(format!(".{}", &random_hex()[..16]));
    let temporary = path.with_file_name(name);
    let written = create_private(&temporary)
        .and_then(|mut file| {
            file.write_all(content.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell; a leftover is harmless and private.
        drop(std::fs::remove_file(&temporary));
    }
    written
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
