//! Makes the path of a volume that `DirectoryOrCreate` or `FileOrCreate` asks for. From the directory that
//! was opened and judged on everything goes by descriptor, and no link is followed: one that is put there
//! meanwhile leads nowhere.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, statat};
use rustix::io::Errno;

use super::{ClosedPaths, refuse};
use crate::mounts::descriptor_path;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The deepest directory on the way to a path that is there, held open.
#[derive(Debug)]
pub(crate) struct Start {
    directory: OwnedFd,
    /// What is missing below it.
    rest: PathBuf,
}

impl Start {
    /// Finds where a missing path begins to be missing, and judges where it would be made.
    ///
    /// Errors: it would lie where no pod may be, or its name goes back up.
    pub(crate) fn find(closed: &ClosedPaths, path: &Path) -> io::Result<Self> {
        for ancestor in path.ancestors().skip(1) {
            let directory = match rustix::fs::open(ancestor, DIRECTORY, Mode::empty()) {
                Ok(directory) => directory,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let rest = path.strip_prefix(ancestor).map_err(io::Error::other)?;
            let rest = rest.to_owned();
            let is_plain = |part| matches!(part, Component::Normal(_));
            if !rest.components().all(is_plain) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let real = fs::read_link(descriptor_path(&directory))?.join(&rest);
            let refusal = closed.refusal(&real);
            let refusal = refusal.or_else(|| closed.same_directory(&directory, &rest));
            let refusal = refusal.or_else(|| closed.same_above(&real, &directory));
            refuse(path, &real, refusal)?;
            return Ok(Self { directory, rest });
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Makes the directory with those above it.
    pub(crate) fn make_directory(self) -> io::Result<()> {
        let mut directory = self.directory;
        for name in &self.rest {
            match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            directory = openat(
                &directory,
                name,
                DIRECTORY | OFlags::NOFOLLOW,
                Mode::empty(),
            )?;
        }
        Ok(())
    }

    /// Makes the file; the directory that it lies in must be there, as for the kubelet.
    pub(crate) fn make_file(&self) -> io::Result<()> {
        // A second name would be looked up through the first, which may be a link by now.
        if self.rest.iter().count() != 1 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        match openat(&self.directory, &self.rest, flags | OFlags::NOFOLLOW, mode) {
            Ok(_) => Ok(()),
            // Another pod made it meanwhile; what is there is judged when it is mounted.
            Err(Errno::EXIST) if self.is_file()? => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Start {
    fn is_file(&self) -> io::Result<bool> {
        let found = statat(&self.directory, &self.rest, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct World {
        scratch: tempfile::TempDir,
        closed: ClosedPaths,
    }

    impl World {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let mut closed = ClosedPaths::default();
            closed.close("the data directory", scratch.path().join("data"));
            let world = Self { scratch, closed };
            fs::create_dir(world.at("data")).unwrap();
            fs::create_dir(world.at("shared")).unwrap();
            world
        }

        fn at(&self, name: &str) -> PathBuf {
            self.scratch.path().canonicalize().unwrap().join(name)
        }

        fn start(&self, name: &str) -> io::Result<Start> {
            Start::find(&self.closed, &self.at(name))
        }

        fn in_data(&self) -> usize {
            fs::read_dir(self.at("data")).unwrap().count()
        }
    }

    #[test]
    fn what_is_missing_is_made() {
        let world = World::new();
        world
            .start("shared/a/b/c")
            .unwrap()
            .make_directory()
            .unwrap();
        assert!(world.at("shared/a/b/c").is_dir());
        world.start("shared/a/file").unwrap().make_file().unwrap();
        assert!(world.at("shared/a/file").is_file());
        symlink(world.at("shared"), world.at("link")).unwrap();
        world.start("link/d").unwrap().make_directory().unwrap();
        assert!(world.at("shared/d").is_dir());
        let error = world.start("shared/no/file").unwrap().make_file();
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
        let back = world.start("shared/no/../x").unwrap_err();
        assert_eq!(back.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn nothing_is_made_in_a_closed_directory() {
        let world = World::new();
        symlink(world.at("data"), world.at("shared/link")).unwrap();
        for name in ["data/x", "data/x/y", "shared/link/x"] {
            let refused = world.start(name).unwrap_err().to_string();
            assert!(refused.contains("the data directory"), "{refused}");
        }
        assert_eq!(world.in_data(), 0);
    }

    /// A pod that shares a directory of the host put a link there after the check, and what was made for
    /// the next pod was made where the link led.
    #[test]
    fn a_link_that_is_put_there_after_the_check_leads_nowhere() {
        let world = World::new();
        fs::create_dir(world.at("shared/deep")).unwrap();
        let directory = world.start("shared/deep/a/b").unwrap();
        let file = world.start("shared/deep/file").unwrap();
        let missing = world.start("shared/x/y").unwrap();
        symlink(world.at("data"), world.at("shared/x")).unwrap();
        assert!(missing.make_file().is_err());
        assert!(missing.make_directory().is_err());
        fs::rename(world.at("shared/deep"), world.at("shared/moved")).unwrap();
        symlink(world.at("data"), world.at("shared/deep")).unwrap();
        directory.make_directory().unwrap();
        file.make_file().unwrap();
        assert!(world.at("shared/moved/a/b").is_dir());
        assert!(world.at("shared/moved/file").is_file());
        let (one, other) = (world.start("shared/two"), world.start("shared/two"));
        one.unwrap().make_file().unwrap();
        other.unwrap().make_file().unwrap();
        symlink(world.at("data/late"), world.at("shared/late")).unwrap();
        assert!(world.start("shared/late").unwrap().make_file().is_err());
        assert_eq!(world.in_data(), 0);
    }
}
