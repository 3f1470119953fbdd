//! Who we are and who may talk to us: an authority of our own, a server certificate, and the
//! administrator's credentials. Checking them is left to rustls and `access.rs`.

mod kept;

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use crate::Entropy;
use crate::keys::{self, Keys};

pub use kept::KeepError;

/// The names that a client may know a control plane on this machine by.
const SERVER_NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// First and last year of our certificates.
///
/// An authority lives as long as the state it guards, so expiry could only break a working laptop.
/// Shorter lives make sense once certificates are issued to others than the administrator.
const VALID_YEARS: (i32, i32) = (2025, 2125);

/// The authority and what it has issued.
pub struct Identity {
    ca: Certified,
    server: Certified,
    admin: Certified,
    token: String,
    /// The key that signs the tokens of service accounts.
    signing: Vec<u8>,
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A key or a certificate could not be made.
    #[error("issue the certificate of {subject}")]
    Issue {
        subject: &'static str,
        #[source]
        source: rcgen::Error,
    },
    /// rustls does not accept what we made.
    #[error("configure TLS")]
    Tls(#[from] rustls::Error),
    /// Client certificates cannot be checked against our authority.
    #[error("check client certificates")]
    Verifier(#[from] VerifierBuilderError),
    /// The file that keeps it cannot be read or written.
    #[error("keep the identity")]
    Keep(#[source] KeepError),
}

/// A certificate with its key.
pub(crate) struct Certified {
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

type Authority = CertifiedIssuer<'static, KeyPair>;
type Signer = Issuer<'static, KeyPair>;

impl Identity {
    /// Makes a new authority, a server certificate for this machine and `extra_names` (DNS names or
    /// addresses), and a token of 256 random bits.
    pub fn generate(extra_names: &[String]) -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
        let key = key.map_err(|source| issue("the authority", source))?;
        let (key_pem, key_der) = (key.serialize_pem(), key.serialize_der());
        let ca = authority(key).map_err(|source| issue("the authority", source))?;
        let server =
            server(&ca, server_names(extra_names)).map_err(|source| issue("the server", source))?;
        let admin = admin(&ca).map_err(|source| issue("the administrator", source))?;
        Ok(Self {
            ca: Certified {
                certificate_pem: ca.pem(),
                key_pem,
                certificate: ca.der().clone(),
                key: key_der,
            },
            server,
            admin,
            token: random_hex(),
            signing: keys::generate(),
        })
    }

    /// Makes the server known by these names too, with a new certificate of the same authority if the
    /// present one lacks one of them or of those that every server has. Tells whether it was made.
    ///
    /// Clients trust the authority, so that kubeconfigs and tokens stay valid.
    pub fn answer_to(&mut self, extra_names: &[String]) -> Result<bool, IdentityError> {
        let names = server_names(extra_names);
        if names
            .iter()
            .all(|name| is_valid_for(&self.server.certificate, name))
        {
            return Ok(false);
        }
        let failed = |source| issue("the server", source);
        let key = KeyPair::from_pem(&self.ca.key_pem).map_err(failed)?;
        let issuer = Issuer::new(authority_params().map_err(failed)?, key);
        self.server = server(&issuer, names).map_err(failed)?;
        Ok(true)
    }

    /// The certificate of the authority, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca.certificate_pem
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::read(&self.signing).expect("it was made or checked as such a key")
    }

    pub(crate) fn admin(&self) -> &Certified {
        &self.admin
    }

    /// The TLS side of the server: our certificate, HTTP/2 before HTTP/1.1, client certificates of
    /// our authority welcome but not required.
    pub(crate) fn tls(&self) -> Result<ServerConfig, IdentityError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.certificate.clone())?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.server.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.server.certificate.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("ca_pem", &self.ca.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// 256 random bits of the system.
pub(crate) fn random_hex() -> String {
    let system = Entropy::system();
    format!("{:032x}{:032x}", system.draw(), system.draw())
}

fn issue(subject: &'static str, source: rcgen::Error) -> IdentityError {
    IdentityError::Issue { subject, source }
}

fn server_names(extra: &[String]) -> Vec<String> {
    let own = SERVER_NAMES.iter().map(|name| (*name).to_owned());
    own.chain(extra.iter().cloned()).collect()
}

/// Whether a client that knows the server by this name takes the certificate for its own.
fn is_valid_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok(name) = ServerName::try_from(name) else {
        return false;
    };
    let parsed = ParsedCertificate::try_from(certificate);
    parsed.is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

fn authority(key: KeyPair) -> Result<Authority, rcgen::Error> {
    CertifiedIssuer::self_signed(authority_params()?, key)
}

/// The same at all times: what it issues later names it as it named itself.
fn authority_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(Vec::new(), "sundown-ca")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}

fn server(ca: &Signer, names: Vec<String>) -> Result<Certified, rcgen::Error> {
    leaf(
        ca,
        params(names, "kube-apiserver")?,
        ExtendedKeyUsagePurpose::ServerAuth,
    )
}

/// Kubernetes reads the user from the common name and the groups from the organizations.
fn admin(ca: &Signer) -> Result<Certified, rcgen::Error> {
    let mut params = params(Vec::new(), "kubernetes-admin")?;
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    leaf(ca, params, ExtendedKeyUsagePurpose::ClientAuth)
}

fn params(names: Vec<String>, common_name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.not_before = rcgen::date_time_ymd(VALID_YEARS.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(VALID_YEARS.1, 12, 31);
    Ok(params)
}

/// The purpose keeps a server certificate from being shown as a client's.
fn leaf(
    ca: &Signer,
    mut params: CertificateParams,
    purpose: ExtendedKeyUsagePurpose,
) -> Result<Certified, rcgen::Error> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.signed_by(&key, ca)?;
    Ok(Certified {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
        certificate: certificate.into(),
        key: key.serialize_der(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::generate(&[]).unwrap()
    }

    #[test]
    fn a_certificate_is_issued_anew_only_for_a_name_that_it_lacks() {
        let mut identity = identity();
        let before = identity.server.certificate.clone();
        assert!(!identity.answer_to(&[]).unwrap());
        assert_eq!(identity.server.certificate, before);
        let names = ["10.88.0.1".to_owned()];
        assert!(identity.answer_to(&names).unwrap());
        for name in [
            "10.88.0.1",
            "127.0.0.1",
            "kubernetes.default.svc.cluster.local",
        ] {
            assert!(is_valid_for(&identity.server.certificate, name), "{name}");
        }
        assert!(!is_valid_for(&identity.server.certificate, "10.88.0.2"));
        assert!(!identity.answer_to(&names).unwrap());
    }

    /// A data directory of before the name was among those that every server has.
    #[test]
    fn a_certificate_of_earlier_times_is_replaced_under_the_same_authority() {
        let mut identity = identity();
        let key = KeyPair::from_pem(&identity.ca.key_pem).unwrap();
        let issuer = Issuer::new(authority_params().unwrap(), key);
        identity.server = server(&issuer, vec!["localhost".to_owned()]).unwrap();
        assert!(identity.answer_to(&[]).unwrap());
        let mut roots = RootCertStore::empty();
        roots.add(identity.ca.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = ServerName::try_from("kubernetes.default.svc.cluster.local").unwrap();
        let now = rustls::pki_types::UnixTime::now();
        let judged = rustls::client::danger::ServerCertVerifier::verify_server_cert(
            &*verifier.build().unwrap(),
            &identity.server.certificate,
            &[],
            &name,
            &[],
            now,
        );
        assert!(judged.is_ok(), "{judged:?}");
    }
}
