//! What a control plane on a data directory finds there: its state, its identity, its port. What the
//! state is made of is left to `sundown-disk`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sundown_disk::Disk;
use sundown_server::{Clock, Durability, Entropy, Https, HttpsError, Identity, Shared};
use sundown_store::Revision;

use crate::builder::{Listen, StartError};

/// Where everything is kept, and how.
#[derive(Debug, Clone)]
pub struct Data {
    /// Made if need be. Nobody else may use it at the same time.
    pub directory: PathBuf,
    /// How soon a write is answered.
    pub durability: Durability,
    /// Go on from this revision of a damaged directory, without what came after it; zero: empty.
    pub accept_loss_after: Option<u64>,
    /// Make a new identity: kubeconfigs and tokens of the old one are no longer valid.
    pub new_identity: bool,
}

impl Data {
    /// In a directory, with what is usual for the rest.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            durability: Durability::default(),
            accept_loss_after: None,
            new_identity: false,
        }
    }

    /// A server that goes on with what was kept, under the name that it had.
    pub(crate) fn open(
        &self,
        config: sundown_api::Config,
        clock: Arc<dyn Clock>,
        names: &[String],
    ) -> Result<(Shared, Identity), StartError> {
        let options = sundown_disk::Options {
            history: config.history,
            accept_loss_after: self.accept_loss_after.map(Revision::new),
        };
        let (disk, store) = Disk::open(&self.directory, options)?;
        // Before the first write: a start that is interrupted here is one of a new directory still.
        let identity = self.identity(store.revision() == Revision::ZERO, names)?;
        let (keep, entropy) = (Box::new(disk), Entropy::system());
        let shared = Shared::durable(config, clock, entropy, store, keep, self.durability)?;
        Ok((shared.signing_as(&identity), identity))
    }

    /// The identity that is kept, answering to these names too.
    fn identity(&self, is_new: bool, names: &[String]) -> Result<Identity, StartError> {
        let path = sundown_disk::state(&self.directory).join("identity.json");
        if !self.new_identity {
            if let Some(mut identity) = Identity::load(&path)? {
                if identity.answer_to(names)? {
                    identity.save(&path)?;
                }
                return Ok(identity);
            }
            if !is_new {
                return Err(StartError::IdentityGone { path });
            }
        }
        let identity = Identity::generate(names)?;
        identity.save(&path)?;
        Ok(identity)
    }

    /// With any port, the one of the last time if it is free: kubeconfigs stay valid over restarts.
    pub(crate) async fn bind(
        &self,
        listen: &Listen,
        shared: &Arc<Shared>,
        identity: &Identity,
    ) -> Result<Https, HttpsError> {
        let file = sundown_disk::state(&self.directory).join("port");
        if listen.address.port() == 0
            && let Some(port) = noted_port(&file)
        {
            let address = SocketAddr::new(listen.address.ip(), port);
            if let Ok(https) = Https::bind(Arc::clone(shared), identity, address).await {
                return Ok(https);
            }
        }
        let https = Https::bind(Arc::clone(shared), identity, listen.address).await?;
        let port = https.address().port();
        if let Err(error) = write_port(&file, port) {
            tracing::warn!(%error, path = %file.display(), "note the port for the next start");
        }
        Ok(https)
    }
}

fn write_port(file: &Path, port: u16) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).truncate(true).mode(0o600);
    options
        .open(file)?
        .write_all(format!("{port}\n").as_bytes())
}

fn noted_port(file: &Path) -> Option<u16> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}
