//! What a cluster says about surviving the loss of its head. The means are built elsewhere.

use serde_json::Value;

use super::ClusterSpec;
use crate::Metadata;
use crate::constants::ANNOTATION_FT_ENABLED;
use crate::reader::{Malformed, Reader};

/// Where the state of the control service is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultToleranceOptions {
    pub backend: String,
    pub redis_address: String,
    pub redis_username: Option<Value>,
    pub redis_password: Option<Value>,
    pub external_storage_namespace: String,
    pub storage: Option<Storage>,
}

/// A volume for the embedded backend.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Storage {
    pub claim_name: String,
    /// Whether size, class or access modes of a new claim are given.
    pub describes_claim: bool,
}

impl FaultToleranceOptions {
    pub(super) fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        let object = |name| Ok(at.raw(name)?.map(Value::Object));
        Ok(Self {
            backend: at.text("backend")?,
            redis_address: at.text("redisAddress")?,
            redis_username: object("redisUsername")?,
            redis_password: object("redisPassword")?,
            external_storage_namespace: at.text("externalStorageNamespace")?,
            storage: at.optional("storage", Storage::read)?,
        })
    }

    /// Whether the embedded backend is asked for; without a word it is Redis.
    pub fn is_embedded(&self) -> bool {
        self.backend == "rocksdb"
    }
}

impl Storage {
    fn read(at: &Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            claim_name: at.text("claimName")?,
            describes_claim: ["size", "storageClassName", "accessModes"]
                .iter()
                .any(|name| at.has(name)),
        })
    }
}

impl ClusterSpec {
    /// Whether the state of the head is kept, asked for in either way.
    pub fn is_fault_tolerant(&self, metadata: &Metadata) -> bool {
        self.fault_tolerance.is_some() || metadata.is_annotated(ANNOTATION_FT_ENABLED)
    }
}
