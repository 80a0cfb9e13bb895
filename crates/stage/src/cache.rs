//! A content-addressed store on disk. Several processes may use one at a time: every file is written whole under a
//! temporary name and renamed, and checked by digest when it is read. Whatever does not check is as good as absent.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Part of the path: a later format does not meet files of this one.
const FORMAT: &str = "v1";

/// Names the folder of the cache, before the user's own cache folder.
const VARIABLE: &str = "TILEWRIGHT_CACHE";

/// The cache of compiled kernels: bytes under their digest, and entries that name such bytes under a key.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// Digest of everything that an entry depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(blake3::Hash);

impl Key {
    /// `purpose` keeps apart what is keyed for different uses; each part is hashed with its length.
    pub(crate) fn new(purpose: &str, parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hasher.finalize())
    }
}

#[derive(Serialize, Deserialize)]
struct Entry<'a> {
    /// Digest of `body`.
    digest: String,
    body: std::borrow::Cow<'a, str>,
}

impl Cache {
    /// Uses (and makes) the folder `root`.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        for part in ["objects", "entries"] {
            std::fs::create_dir_all(root.join(FORMAT).join(part))?;
        }
        Ok(Self { root })
    }

    /// The folder to use by default: `TILEWRIGHT_CACHE`, else `tilewright` in the user's cache folder.
    pub fn default_root() -> PathBuf {
        match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(folder) => folder.into(),
            None => etcetera::choose_base_strategy()
                .map_or_else(|_| std::env::temp_dir(), |strategy| strategy.cache_dir())
                .join("tilewright"),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keeps bytes; gives the digest under which [`Cache::get`] finds them.
    pub fn put(&self, bytes: &[u8]) -> io::Result<String> {
        let digest = blake3::hash(bytes).to_hex().to_string();
        let path = self.path("objects", &digest);
        // Also replaces a corrupted file: one that is there and right is not written again.
        if !std::fs::read(&path).is_ok_and(|found| found == bytes) {
            write_whole(&path, bytes)?;
        }
        Ok(digest)
    }

    /// The bytes with this digest, if they are here and whole.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let bytes = std::fs::read(self.path("objects", digest)).ok()?;
        (blake3::hash(&bytes).to_hex().as_str() == digest).then_some(bytes)
    }

    pub(crate) fn entry<T: DeserializeOwned>(&self, key: Key) -> Option<T> {
        let text = std::fs::read_to_string(self.path("entries", &key.0.to_hex())).ok()?;
        let entry: Entry<'_> = serde_json::from_str(&text).ok()?;
        if blake3::hash(entry.body.as_bytes()).to_hex().as_str() != entry.digest {
            return None;
        }
        serde_json::from_str(&entry.body).ok()
    }

    pub(crate) fn set_entry<T: Serialize>(&self, key: Key, value: &T) -> io::Result<()> {
        let body = serde_json::to_string(value)?;
        let digest = blake3::hash(body.as_bytes()).to_hex().to_string();
        let text = serde_json::to_string(&Entry { digest, body: body.into() })?;
        write_whole(&self.path("entries", &key.0.to_hex()), text.as_bytes())
    }

    fn path(&self, part: &str, name: &str) -> PathBuf {
        let (folder, _) = name.split_at(name.len().min(2));
        self.root.join(FORMAT).join(part).join(folder).join(name)
    }
}

/// Readers see the old file or the new one, never a part.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (Cache, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Cache::open(folder.path()).unwrap(), folder)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
        }
        found
    }

    #[test]
    fn keys_keep_parts_and_purposes_apart() {
        let key = |purpose, parts: &[&str]| Key::new(purpose, parts);
        assert_eq!(key("a", &["x", "y"]), key("a", &["x", "y"]));
        assert_ne!(key("a", &["x", "y"]), key("a", &["xy", ""]));
        assert_ne!(key("a", &["x", "y"]), key("b", &["x", "y"]));
    }

    #[test]
    fn what_is_put_is_found_and_what_is_corrupted_is_not() {
        let (cache, _folder) = cache();
        let key = Key::new("test", &["k"]);
        let digest = cache.put(b"bytes").unwrap();
        cache.set_entry(key, &digest).unwrap();
        assert_eq!(cache.get(&digest).as_deref(), Some(b"bytes".as_slice()));
        assert_eq!(cache.entry::<String>(key), Some(digest.clone()));
        for path in files(cache.root()) {
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
        assert_eq!(cache.get(&digest), None);
        assert_eq!(cache.entry::<String>(key), None);
        assert_eq!(cache.put(b"bytes").unwrap(), digest);
        assert_eq!(cache.get(&digest).as_deref(), Some(b"bytes".as_slice()));
    }

    #[test]
    fn names_that_are_no_digests_reach_no_file() {
        let (cache, _folder) = cache();
        for name in ["", "../../../../etc/passwd", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(cache.get(name), None);
        }
    }

    #[test]
    fn parallel_writers_and_readers_never_see_a_part() {
        let (cache, _folder) = cache();
        let key = Key::new("test", &["shared"]);
        let values: Vec<String> = (0..4).map(|i| format!("{i}").repeat(200_000)).collect();
        std::thread::scope(|scope| {
            for value in &values {
                let cache = &cache;
                scope.spawn(move || {
                    for _ in 0..10 {
                        cache.set_entry(key, value).unwrap();
                        let found = cache.entry::<String>(key).expect("an entry is always whole");
                        assert_eq!(found.len(), 200_000);
                        let digest = cache.put(value.as_bytes()).unwrap();
                        assert_eq!(cache.get(&digest).as_deref(), Some(value.as_bytes()));
                    }
                });
            }
        });
        assert!(values.contains(&cache.entry::<String>(key).unwrap()));
        assert_eq!(files(cache.root()).len(), 1 + values.len(), "no temporary file stays behind");
    }

    #[test]
    fn the_default_folder_is_not_empty() {
        assert!(Cache::default_root().components().count() > 1);
    }
}
