//! An identity that outlives its server: one private file, so that kubeconfigs and tokens stay valid.
//! Whether a new one may take the place of one that is gone is for the caller to decide.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

use super::{Certified, Identity, IdentityError};
use crate::keys::Keys;
use crate::write_private;

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Content {
    ca: Pair,
    server: Pair,
    admin: Pair,
    token: String,
    /// The key that signs the tokens of service accounts, PKCS #8.
    signing: String,
    /// Of everything above: a flipped bit must not become a wrong credential.
    #[serde(default)]
    checksum: String,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    certificate: String,
    key: String,
}

/// Why an identity was not kept or found again.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct KeepError {
    path: PathBuf,
    source: io::Error,
}

impl Identity {
    /// The identity that a file keeps; None: there is no such file.
    ///
    /// Errors: the file cannot be read, or its content is damaged.
    pub fn load(path: &Path) -> Result<Option<Self>, IdentityError> {
        let failed = |source| failed(path, source);
        match File::open(path) {
            Ok(file) => read_own(path, &file).map(Some).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes it to a file that only its owner may read, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), IdentityError> {
        let directory = path.parent().unwrap_or(Path::new("."));
        write_private(path, &self.text())
            .and_then(|()| File::open(directory)?.sync_all())
            .map_err(|source| failed(path, source))
    }

    fn text(&self) -> String {
        let pair = |it: &Certified| Pair {
            certificate: it.certificate_pem.clone(),
            key: it.key_pem.clone(),
        };
        let mut content = Content {
            ca: pair(&self.ca),
            server: pair(&self.server),
            admin: pair(&self.admin),
            token: self.token.clone(),
            signing: STANDARD.encode(&self.signing),
            checksum: String::new(),
        };
        content.checksum = checksum(&content);
        json(&content)
    }
}

/// Who can write this file knows the token and the authority.
fn read_own(path: &Path, mut file: &File) -> io::Result<Identity> {
    sundown_files::own(path, &file.metadata()?).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    read(&bytes)
}

fn read(bytes: &[u8]) -> io::Result<Identity> {
    let mut content: Content = serde_json::from_slice(bytes)?;
    let noted = std::mem::take(&mut content.checksum);
    if noted != checksum(&content) {
        return Err(io::Error::other("it is damaged: its checksum is wrong"));
    }
    let signing = STANDARD.decode(&content.signing);
    let signing = signing.map_err(io::Error::other)?;
    if Keys::read(&signing).is_none() {
        return Err(io::Error::other("the signing key cannot be used"));
    }
    Ok(Identity {
        ca: certified(content.ca)?,
        server: certified(content.server)?,
        admin: certified(content.admin)?,
        token: content.token,
        signing,
    })
}

fn certified(pair: Pair) -> io::Result<Certified> {
    let key = PrivatePkcs8KeyDer::from_pem_slice(pair.key.as_bytes());
    let key = key.map_err(io::Error::other)?;
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes());
    Ok(Certified {
        certificate: certificate.map_err(io::Error::other)?,
        certificate_pem: pair.certificate,
        key: key.secret_pkcs8_der().to_vec(),
        key_pem: pair.key,
    })
}

fn checksum(content: &Content) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, json(content).as_bytes());
    STANDARD.encode(digest)
}

fn json(content: &Content) -> String {
    serde_json::to_string(content).expect("strings are JSON")
}

fn failed(path: &Path, source: io::Error) -> IdentityError {
    let path = path.to_owned();
    IdentityError::Keep(KeepError { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{Identity, read};

    #[test]
    fn a_kept_identity_is_the_same_and_private() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("identity.json");
        assert!(Identity::load(&path).unwrap().is_none());
        let identity = Identity::generate(&[]).unwrap();
        identity.save(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let loaded = Identity::load(&path).unwrap().unwrap();
        assert_eq!(loaded.text(), identity.text());
        loaded.tls().unwrap();
    }

    #[test]
    fn an_identity_that_others_can_write_is_none_of_ours() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("identity.json");
        Identity::generate(&[]).unwrap().save(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let error = Identity::load(&path).err().unwrap();
        let cause = std::error::Error::source(&error).unwrap().source();
        let error = format!("{error:?} {cause:?}");
        assert!(error.contains("Writable"), "{error}");
    }

    #[test]
    fn a_flipped_bit_is_never_another_identity() {
        let text = Identity::generate(&[]).unwrap().text().into_bytes();
        for at in 0..text.len() {
            let mut damaged = text.clone();
            damaged[at] ^= 0x02;
            assert!(read(&damaged).is_err(), "at {at}");
        }
    }
}
