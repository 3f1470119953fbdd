//! The directory of a pod: written before its first process, removed after its last one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::setup::REMOVING;
use crate::paths::{NodePaths, PodPaths};
use crate::record::{self, Identity};
use crate::spec::{PodSpec, is_plain_name};

/// How many removals of what one pod left may have been cut short, each in a directory of its own; what more
/// there is shares the last one.
const ASIDE_COUNT_MAX: usize = 16;

/// Writes who the pod is.
pub(super) fn write(paths: &PodPaths, spec: &PodSpec, address: Ipv4Addr) -> io::Result<()> {
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(paths.dir())?;
    let identity = Identity {
        uid: spec.uid.clone(),
        namespace: spec.namespace.clone(),
        name: spec.name.clone(),
        address,
    };
    record::write_whole(&paths.identity(), &identity)
}

/// Removes what the containers of a pod wrote; records and logs stay.
///
/// # Assumes
/// Nothing of the pod runs, so nothing is mounted there.
pub(super) fn clear(paths: &NodePaths, uid: &str) -> io::Result<()> {
    check(uid)?;
    let mut written = written(&paths.pod(uid)).into_iter();
    written.try_for_each(|directory| remove_all(paths, &directory))
}

/// Takes the same out of the pod's directory, for a removal that may take its time; gives where it is.
///
/// # Assumes
/// Nothing of the pod runs, so nothing is mounted there; and nothing of it is being removed.
pub(super) fn set_aside(paths: &NodePaths, uid: &str) -> io::Result<PathBuf> {
    check(uid)?;
    move_aside(paths, uid, &written(&paths.pod(uid)))
}

/// Takes the whole directory of a pod out of the way: half a directory must not be taken for a pod.
///
/// # Assumes
/// As [`set_aside`], unless there is a free name.
pub(super) fn set_aside_whole(paths: &NodePaths, uid: &str) -> io::Result<PathBuf> {
    check(uid)?;
    move_aside(paths, uid, &[paths.pod(uid).dir().to_owned()])
}

/// Not finding one of them is success.
fn move_aside(paths: &NodePaths, uid: &str, directories: &[PathBuf]) -> io::Result<PathBuf> {
    let aside = make_aside(paths, uid)?;
    let free = (0..u64::MAX).map(|number| aside.join(number.to_string()));
    let mut free = free.filter(|place| !exists(place));
    for directory in directories {
        let place = free.next().ok_or(io::ErrorKind::AlreadyExists)?;
        match fs::rename(directory, place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(aside)
}

/// A directory of its own, with a name that no node takes for a pod; the last one, if all names are taken.
fn make_aside(paths: &NodePaths, uid: &str) -> io::Result<PathBuf> {
    let mut last = Err(io::ErrorKind::AlreadyExists.into());
    for aside in asides(paths, uid) {
        match fs::DirBuilder::new().mode(0o700).create(&aside) {
            // Of a node that was killed over it, or of a removal that is under way.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Ok(aside),
            made => return made.map(|()| aside),
        }
    }
    last
}

fn asides(paths: &NodePaths, uid: &str) -> impl Iterator<Item = PathBuf> {
    let pods = paths.pods_dir();
    (0..ASIDE_COUNT_MAX).map(move |number| pods.join(format!("{REMOVING}{uid}-{number}")))
}

/// Where the containers of a pod write.
fn written(pod: &PodPaths) -> Vec<PathBuf> {
    let mut all = vec![pod.volumes()];
    for name in record::names(&pod.containers()) {
        let attempts = record::names(&pod.containers().join(&name));
        let attempts = attempts.iter().filter_map(|it| it.parse().ok());
        all.extend(attempts.map(|attempt| pod.scratch(&name, attempt)));
    }
    all
}

/// A path that is joined to another replaces it when it is absolute: what is no plain name must
/// never come near a removal.
fn check(uid: &str) -> io::Result<()> {
    if is_plain_name(uid) {
        return Ok(());
    }
    let message = format!("{uid:?} cannot name a directory of ours");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Whatever a container left there: links are not followed on the way either. Each directory has one removal at a
/// time: a pod may be removed while what an earlier node left of it is being cleared up.
pub(super) fn remove_all(paths: &NodePaths, directory: &Path) -> io::Result<()> {
    let root = paths.data_dir();
    let inside = directory.strip_prefix(root).map_err(io::Error::other)?;
    let _alone = REMOVALS.begin(directory);
    sundown_files::remove(root, inside)
}

/// All removals of this process, whichever thread they are on.
static REMOVALS: Removals = Removals {
    under_way: Mutex::new(BTreeSet::new()),
    ended: Condvar::new(),
};

/// What is being removed.
struct Removals {
    under_way: Mutex<BTreeSet<PathBuf>>,
    ended: Condvar,
}

/// The right to remove a directory.
struct Removal<'a> {
    all: &'a Removals,
    directory: &'a Path,
}

impl Removals {
    /// Waits for the end of another removal of the same.
    fn begin<'a>(&'a self, directory: &'a Path) -> Removal<'a> {
        let is_under_way = |all: &mut BTreeSet<PathBuf>| all.contains(directory);
        let all = self.lock();
        let waited = self.ended.wait_while(all, is_under_way);
        let mut all = waited.unwrap_or_else(PoisonError::into_inner);
        all.insert(directory.to_owned());
        Removal {
            all: self,
            directory,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(self.directory);
        self.all.ended.notify_all();
    }
}

/// Removes the directory of a pod, and what earlier removals left of it; not finding them is success.
pub(super) fn remove(paths: &NodePaths, uid: &str) -> io::Result<()> {
    check(uid)?;
    if exists(paths.pod(uid).dir()) {
        // Nothing is moved into what is just being removed.
        if asides(paths, uid).all(|aside| exists(&aside)) {
            remove_asides(paths, uid)?;
        }
        set_aside_whole(paths, uid)?;
    }
    remove_asides(paths, uid)
}

fn remove_asides(paths: &NodePaths, uid: &str) -> io::Result<()> {
    let mut left = asides(paths, uid).filter(|aside| exists(aside));
    left.try_for_each(|aside| remove_all(paths, &aside))
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_removed_while_what_is_left_of_it_is_cleared_up() {
        let home = tempfile::tempdir().unwrap();
        let paths = NodePaths::new(home.path()).unwrap();
        for _ in 0..10 {
            let deep: PathBuf = std::iter::repeat_n("d", 200).collect();
            fs::create_dir_all(paths.pod("deep").volumes().join(deep)).unwrap();
            let aside = set_aside(&paths, "deep").unwrap();
            let both = std::thread::scope(|scope| {
                let clears_up = scope.spawn(|| remove_all(&paths, &aside));
                let removes = scope.spawn(|| remove(&paths, "deep"));
                [clears_up, removes].map(|it| it.join().unwrap().map_err(|it| it.to_string()))
            });
            assert_eq!(both, [Ok(()), Ok(())]);
            assert!(record::names(&paths.pods_dir()).is_empty());
        }
    }
    /// The removal failed before it removed any of them, so that the pod stayed as long as they did.
    #[test]
    fn a_pod_is_removed_with_all_that_cut_removals_left_of_it() {
        let home = tempfile::tempdir().unwrap();
        let paths = NodePaths::new(home.path()).unwrap();
        for aside in asides(&paths, "often") {
            fs::create_dir_all(aside.join("0")).unwrap();
        }
        fs::create_dir_all(paths.pod("often").volumes()).unwrap();
        remove(&paths, "often").unwrap();
        assert!(record::names(&paths.pods_dir()).is_empty());
    }

    /// It stayed under its name, and the next pod with that name was written into it.
    #[test]
    fn what_is_moved_when_no_name_is_free_shares_the_last_one() {
        let home = tempfile::tempdir().unwrap();
        let paths = NodePaths::new(home.path()).unwrap();
        for aside in asides(&paths, "half") {
            fs::create_dir_all(aside.join("0")).unwrap();
        }
        fs::create_dir_all(paths.pod("half").volumes()).unwrap();
        let aside = set_aside_whole(&paths, "half").unwrap();
        assert!(!paths.pod("half").dir().exists(), "its name is free");
        assert_eq!(Some(&aside), asides(&paths, "half").last().as_ref());
        assert!(aside.join("0").is_dir() && aside.join("1").is_dir());
    }
}
