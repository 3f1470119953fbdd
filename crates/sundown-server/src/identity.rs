//! Who we are and who may talk to us: an authority of our own, a server certificate, and the
//! administrator's credentials. Checking them is left to rustls and `access.rs`.

mod kept;

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use crate::Entropy;
use crate::keys::{self, Keys};

pub use kept::KeepError;

/// The names that a client may know a control plane on this machine by.
const SERVER_NAMES: [&str; 6] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
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

impl Identity {
    /// Makes a new authority, a server certificate for this machine and `extra_names` (DNS names or
    /// addresses), and a token of 256 random bits.
    pub fn generate(extra_names: &[String]) -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
        let key = key.map_err(|source| issue("the authority", source))?;
        let (key_pem, key_der) = (key.serialize_pem(), key.serialize_der());
        let ca = authority(key).map_err(|source| issue("the authority", source))?;
        let mut names: Vec<String> = SERVER_NAMES.map(str::to_owned).into();
        names.extend_from_slice(extra_names);
        let server = server(&ca, names).map_err(|source| issue("the server", source))?;
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

fn authority(key: KeyPair) -> Result<Authority, rcgen::Error> {
    let mut params = params(Vec::new(), "sundown-ca")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    CertifiedIssuer::self_signed(params, key)
}

fn server(ca: &Authority, names: Vec<String>) -> Result<Certified, rcgen::Error> {
    leaf(
        ca,
        params(names, "kube-apiserver")?,
        ExtendedKeyUsagePurpose::ServerAuth,
    )
}

/// Kubernetes reads the user from the common name and the groups from the organizations.
fn admin(ca: &Authority) -> Result<Certified, rcgen::Error> {
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
    ca: &Authority,
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
