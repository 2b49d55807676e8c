//! Memory that client and worker share.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use crate::command::OpenOptions;
use crate::error::Error;
use crate::protocol::StagingPart;

const PAGE_BYTES: usize = 4096;

/// An anonymous file of fixed size, mapped. No reference into it exists: the other process may write to it at any time.
pub struct Staging {
    file: OwnedFd,
    map: MmapRaw,
}

impl Staging {
    pub fn new(bytes: usize) -> Result<Self, Error> {
        if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) || bytes > OpenOptions::MAX_STAGING_BYTES
        {
            let most = OpenOptions::MAX_STAGING_BYTES;
            let problem = format!(
                "staging memory of {bytes} bytes; it has to be a multiple of {PAGE_BYTES}, at most {most}"
            );
            return Err(Error::Argument { request: "open", problem });
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let make = || -> std::io::Result<Self> {
            let file = memfd_create("gr00t-device-staging", flags)?;
            ftruncate(&file, bytes as u64)?;
            // Otherwise either side could make the other one's access a bus error.
            fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
            let map = MmapOptions::new().len(bytes).map_raw(&file)?;
            Ok(Self { file, map })
        };
        make().map_err(Error::system("staging memory cannot be made"))
    }

    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Copies into it, from its start plus `offset`.
    pub fn write(&mut self, offset: usize, from: &[u8]) -> StagingPart {
        self.check(offset, from.len());
        // SAFETY: the range lies within the mapping, which lives as long as `self`, and is not `from`.
        unsafe {
            self.map.as_mut_ptr().add(offset).copy_from_nonoverlapping(from.as_ptr(), from.len());
        }
        StagingPart { offset, bytes: from.len() }
    }

    /// Copies its first bytes out of it.
    pub fn read(&self, into: &mut [u8]) {
        self.check(0, into.len());
        // SAFETY: as in `write`.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(self.map.as_ptr(), into.len()) }
    }

    fn check(&self, offset: usize, bytes: usize) {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.bytes()),
            "callers cut transfers to the staging memory"
        );
    }
}

impl AsFd for Staging {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let mut staging = Staging::new(PAGE_BYTES).expect("staging memory");
        let part = staging.write(1, b"abc");
        assert_eq!(part, StagingPart { offset: 1, bytes: 3 });
        let mut read = [9; 5];
        staging.read(&mut read);
        assert_eq!(&read, b"\0abc\0");
        assert!(ftruncate(&staging, 0).is_err(), "its size is sealed");
    }

    #[test]
    fn sizes_are_checked() {
        for bytes in [0, 1, PAGE_BYTES + 1, OpenOptions::MAX_STAGING_BYTES + PAGE_BYTES] {
            assert!(matches!(Staging::new(bytes), Err(Error::Argument { .. })), "{bytes}");
        }
    }
}
