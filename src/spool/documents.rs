//! Documents and texts in a persona's `handoffs/` and `texts/` folders, and the files for launch lines and uploads
//! below `state/`. Folders are opened one level at a time, so that no link on the way is followed.

use super::error::Error;
use crate::core::id::{DeliveryId, Slug};
use crate::core::text::is_blank;
use crate::files::{self, FileStamp, Grade, Unfit};
use crate::limits;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// The largest document that is accepted, in bytes.
pub const MAX_DOCUMENT_BYTES: u64 = 1024 * 1024;
/// The most names that a folder's listing gives.
const MAX_NAMES: usize = 100_000;

/// What is found under a document's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentLook {
    Missing,
    /// A file that tasuki does not read: `link` (a symbolic link), `not_regular`, `foreign` (another user's),
    /// `too_large`, `unreadable` or `bad_name`.
    Unsafe(&'static str),
    Present {
        /// The state of the file. If a later look finds the same one, the document is no longer being written.
        file_stamp: FileStamp,
    },
}

/// One reading of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentReading {
    pub bytes: Vec<u8>,
    /// The state of the file. If a later reading has the same one, the document is no longer being written.
    pub file_stamp: FileStamp,
}

/// Why tasuki does not accept a document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// `document_missing`.
    #[error("{path}: there is no such document", path = .path.display())]
    Missing { path: PathBuf },
    /// `document_empty`.
    #[error("{path}: the document holds nothing but white space", path = .path.display())]
    Empty { path: PathBuf },
    /// `document_unsafe`.
    #[error("{path}: {why}; the file was left untouched", path = .path.display())]
    Unsafe {
        path: PathBuf,
        why: String,
        /// Whether the file changed while it was read. Another reading may succeed.
        changing: bool,
    },
    /// `document_unsafe`: a shortage, a disk that does not answer or a missing permission, so nothing is known about
    /// the file.
    #[error("{path}: it can't be read: {source}", path = .path.display())]
    Unread { path: PathBuf, source: io::Error },
}

impl DocumentError {
    /// The wire name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            DocumentError::Missing { .. } => "document_missing",
            DocumentError::Empty { .. } => "document_empty",
            DocumentError::Unsafe { .. } | DocumentError::Unread { .. } => "document_unsafe",
        }
    }

    /// The system's error, if tasuki could not look at the document.
    #[must_use]
    pub fn unavailable(&self) -> Option<&io::Error> {
        match self {
            DocumentError::Unread { source, .. } => Some(source),
            DocumentError::Missing { .. } | DocumentError::Empty { .. } | DocumentError::Unsafe { .. } => None,
        }
    }
}

/// An open folder for documents or texts.
#[derive(Debug)]
pub struct DocumentFolder {
    path: PathBuf,
    fd: OwnedFd,
}

/// Makes `data/personas/<slug>/handoffs` where it is missing, each folder with mode 0700, and opens it.
///
/// # Errors
/// One of the folders is a link or a file; otherwise an I/O error of the system.
pub fn prepare_folder(home: &Path, slug: &Slug) -> Result<DocumentFolder, Error> {
    enter(home, &["data", "personas", slug.as_str(), "handoffs"], true)
}

/// Opens `data/personas/<slug>/handoffs`, and makes this folder if it is missing, but not the persona's own folder.
///
/// # Errors
/// The persona's folder is missing, or one of the folders is a link or a file; otherwise an I/O error of the system.
pub fn remake_folder(home: &Path, slug: &Slug) -> Result<DocumentFolder, Error> {
    enter(home, &["data", "personas", slug.as_str()], false)?;
    prepare_folder(home, slug)
}

/// Opens `data/personas/<slug>/handoffs`.
///
/// # Errors
/// The folder is missing, or a folder on the way is a link or a file; otherwise an I/O error of the system.
pub fn open_folder(home: &Path, slug: &Slug) -> Result<DocumentFolder, Error> {
    enter(home, &["data", "personas", slug.as_str(), "handoffs"], false)
}

/// Writes a text that is too long for a pane to `data/personas/<slug>/texts/<delivery_id>.md`, synced, and returns its
/// path. Writing the same text again is harmless.
///
/// # Errors
/// An I/O error of the system, or a folder is a link.
pub fn write_text(home: &Path, slug: &Slug, id: &DeliveryId, text: &str) -> Result<PathBuf, Error> {
    let folder = enter(home, &["data", "personas", slug.as_str(), "texts"], true)?;
    let name = format!("{id}.md");
    folder.replace(&name, text, Grade::Durable)?;
    Ok(folder.path.join(name))
}

/// Writes `state/launch/<profile>/<name>`, a file to which the profile's launch line refers, for this user alone.
/// Writing the same file again is harmless.
///
/// # Errors
/// An I/O error of the system, or a folder is a link.
pub fn write_launch_file(home: &Path, profile: &Slug, name: &str, text: &str) -> Result<(), Error> {
    enter(home, &["state", "launch", profile.as_str()], true)?.replace(name, text, Grade::Fast)
}

/// Writes the text of an upload to `state/publish/<folder>/<name>`, for this user alone, and returns its path. Writing
/// the same file again is harmless.
///
/// # Errors
/// An I/O error of the system, or a folder is a link.
pub fn write_upload(home: &Path, folder: &str, name: &str, text: &str) -> Result<PathBuf, Error> {
    let folder = enter(home, &["state", "publish", folder], true)?;
    folder.replace(name, text, Grade::Fast)?;
    Ok(folder.path.join(name))
}

/// Removes the file that [`write_upload`] wrote. If that fails, the next upload overwrites it.
pub fn remove_upload(home: &Path, folder: &str, name: &str) {
    let Ok(opened) = enter(home, &["state", "publish", folder], false) else { return };
    let _ = files::remove_at(&opened.fd, OsStr::new(name));
    if let Ok(above) = enter(home, &["state", "publish"], false) {
        let _ = nix::unistd::unlinkat(&above.fd, folder, nix::unistd::UnlinkatFlags::RemoveDir);
    }
}

/// Reads a document that an operator provides by path: absolute or relative to the home, but inside it, without a link
/// on the way.
///
/// # Errors
/// The rule that the document breaks, or why it can't be read.
pub fn read_inside(home: &Path, path: &Path) -> Result<DocumentReading, DocumentError> {
    let refuse = |why: &str| DocumentError::Unsafe { path: path.to_owned(), why: why.to_owned(), changing: false };
    let unread = |source: io::Error| DocumentError::Unread { path: path.to_owned(), source };
    let canonical = home.canonicalize().map_err(unread)?;
    let below = match path.strip_prefix(home).or_else(|_| path.strip_prefix(&canonical)) {
        Ok(below) => below,
        Err(_) if path.is_absolute() => return Err(refuse("it is not inside the home")),
        Err(_) => path,
    };
    let mut parts = Vec::new();
    for part in below.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str().ok_or_else(|| refuse("its path is not UTF-8"))?),
            Component::CurDir => {}
            _ => return Err(refuse("its path must not hold ..")),
        }
    }
    let Some(file) = parts.pop() else { return Err(refuse("its path names no file")) };
    match enter(&canonical, &parts, false) {
        Ok(folder) => folder.read(OsStr::new(file)),
        Err(Error::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
            Err(DocumentError::Missing { path: path.to_owned() })
        }
        Err(Error::Io { cause, .. }) if limits::is_unavailable(&cause) => Err(unread(cause)),
        Err(Error::Layout { path, .. }) => Err(refuse(&format!("{} is a link or not a folder", path.display()))),
        Err(error) => Err(refuse(&error.to_string())),
    }
}

fn enter(home: &Path, below: &[&str], make: bool) -> Result<DocumentFolder, Error> {
    let mut path = home.canonicalize().map_err(|error| Error::io("find the folder", home, error))?;
    let mut fd = files::open_dir(&path).map_err(|error| Error::io("open the folder", &path, error))?;
    for name in below {
        path.push(name);
        let next = if make { files::make_dir_at(&fd, name) } else { files::open_dir_at(&fd, name) };
        fd = next.map_err(|error| Error::open_dir(&path, error))?;
    }
    Ok(DocumentFolder { path, fd })
}

impl DocumentFolder {
    /// The folder's absolute path, for instructions and for the watcher.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at a file without opening it.
    #[must_use]
    pub fn look(&self, file: &OsStr) -> DocumentLook {
        if !files::is_plain(file) {
            return DocumentLook::Unsafe("bad_name");
        }
        match files::meta_at(&self.fd, file) {
            Ok(None) => DocumentLook::Missing,
            Err(_) => DocumentLook::Unsafe("unreadable"),
            Ok(Some(meta)) => match files::check_own(&meta, MAX_DOCUMENT_BYTES) {
                Ok(()) => DocumentLook::Present { file_stamp: meta.file_stamp },
                Err(Unfit::Missing) => DocumentLook::Missing,
                Err(unfit) => DocumentLook::Unsafe(unfit.code()),
            },
        }
    }

    /// Reads a document once and checks it: a regular file of this user, at most 1 MiB, UTF-8, and not blank. The
    /// caller reads or looks again later to see whether the file still changes.
    ///
    /// # Errors
    /// The rule that the document breaks, or why it can't be read.
    pub fn read(&self, file: &OsStr) -> Result<DocumentReading, DocumentError> {
        let path = self.path.join(file);
        let refuse = |path: PathBuf, why: String, changing: bool| DocumentError::Unsafe { path, why, changing };
        if !files::is_plain(file) {
            return Err(refuse(path, "its name is not a plain file name".to_owned(), false));
        }
        let (bytes, file_stamp) = match files::read_own_at(&self.fd, file, MAX_DOCUMENT_BYTES) {
            Ok(reading) => reading,
            Err(Unfit::Missing) => return Err(DocumentError::Missing { path }),
            Err(Unfit::Io(source)) if limits::is_unavailable(&source) => {
                return Err(DocumentError::Unread { path, source });
            }
            Err(unfit) => return Err(refuse(path, unfit.to_string(), matches!(unfit, Unfit::Changing))),
        };
        match std::str::from_utf8(&bytes) {
            Err(_) => Err(refuse(path, "it is not UTF-8".to_owned(), false)),
            Ok(text) if is_blank(text) => Err(DocumentError::Empty { path }),
            Ok(_) => Ok(DocumentReading { bytes, file_stamp }),
        }
    }

    /// Writes and syncs a document that tasuki itself makes from an answer, a transcript or the operator's text.
    /// Returns `false` if a file of that name exists; then it writes nothing.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn write_new(&self, file: &OsStr, bytes: &[u8]) -> Result<bool, Error> {
        if !files::is_plain(file) {
            return Err(Error::io("write", self.path.join(file), io::Error::from(io::ErrorKind::InvalidFilename)));
        }
        let temp = files::scratch_name(&self.fd);
        files::create_at(&self.fd, &temp, &self.fd, file, bytes, Grade::Durable)
            .map_err(|error| Error::io("write", self.path.join(file), error))
    }

    /// Writes a file, replacing an existing one.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn replace(&self, name: &str, text: &str, grade: Grade) -> Result<(), Error> {
        let temp = files::scratch_name(&self.fd);
        files::replace_at(&self.fd, &temp, OsStr::new(name), text.as_bytes(), grade)
            .map_err(|error| Error::io("write", self.path.join(name), error))
    }

    /// The sorted names in the folder, so that the caller can find a free one. Names that are not UTF-8 are left out:
    /// no document of tasuki has one.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn list(&self) -> Result<Vec<String>, Error> {
        let listed = files::names(self.fd.as_fd(), MAX_NAMES, |name| name.to_str().is_some());
        let (names, _) = listed.map_err(|error| Error::io("list the folder", &self.path, error))?;
        let mut names: Vec<String> = names.into_iter().filter_map(|name: OsString| name.into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }
}
