//! A packed arena, in memory or as a mapped file.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use super::cut::Packet;
use super::file::{Header, HeaderBlob};
use super::pack::{BankBytes, Packing};
use super::{ALIGNMENT, ArenaError, ArenaPlan, BANKS, Progress, STAGING_BYTES};
use crate::checkpoint::Checkpoint;

/// The bytes of all banks.
pub struct Arena {
    storage: Storage,
    blobs: Vec<HeaderBlob>,
}

enum Storage {
    Memory(BankBytes),
    /// With the places where banks begin in the file, and where the last one ends.
    Mapped(Mmap, [usize; BANKS + 1]),
}

impl ArenaPlan {
    /// Packs an arena in memory, on all threads of the current rayon pool.
    ///
    /// # Errors
    /// A weight that is not in the checkpoint.
    pub fn image(&self, checkpoint: &Checkpoint) -> Result<Arena, ArenaError> {
        let packing = Packing::new(self, checkpoint)?;
        let mut banks = BankBytes::default();
        packing.pack(packing.pieces(), &mut banks)?;
        let blobs = self.blobs().iter().map(HeaderBlob::of).collect();
        Ok(Arena { storage: Storage::Memory(banks), blobs })
    }
}

impl Arena {
    /// Maps a file that [`Arena::write`] has written with the same key, and checks it from its first byte to its last.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, or was made from something else.
    pub fn open(path: &Path, key: &str) -> Result<Self, ArenaError> {
        let read = |error| ArenaError::Read { path: path.to_owned(), error };
        // Asked before opening: opening a pipe would wait for a writer.
        if !fs::metadata(path).map_err(read)?.is_file() {
            return Err(read(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let file = File::open(path).map_err(read)?;
        // SAFETY: the map is private to the arena, read-only, and handed out as shared slices of bytes only. What
        // remains is another process that changes or cuts the file while it is mapped; arenas are written beside
        // their place and renamed, and a new one is a new file.
        let map = unsafe { Mmap::map(&file) }.map_err(read)?;
        let fault = |problem| ArenaError::File { path: path.to_owned(), problem };
        let (header, banks) = Header::decode(&map, key).map_err(fault)?;
        header.check_banks(banks).map_err(fault)?;
        let first = map.len() - banks.len();
        let starts = header.bank_starts().map(|start| first + start as usize);
        Ok(Self { storage: Storage::Mapped(map, starts), blobs: header.blobs })
    }

    /// All bytes that are used of a bank.
    pub fn bank(&self, bank: u8) -> &[u8] {
        let bank = usize::from(bank);
        match &self.storage {
            Storage::Memory(banks) => &banks[bank],
            Storage::Mapped(map, starts) => &map[starts[bank]..starts[bank + 1]],
        }
    }

    /// Bytes of all banks.
    pub fn bytes(&self) -> u64 {
        (0..BANKS as u8).map(|bank| self.bank(bank).len() as u64).sum()
    }

    /// The bytes of a packet of the arena's plan.
    pub fn packet(&self, packet: &Packet) -> &[u8] {
        &self.bank(packet.bank)[range(packet.offset, packet.bytes)]
    }

    /// The blob of this name.
    pub fn blob(&self, name: &str) -> Option<&[u8]> {
        let blob = self.blobs.iter().find(|blob| blob.name == name)?;
        Some(&self.bank(blob.bank)[range(blob.offset, blob.bytes)])
    }

    /// Hands over the banks, one after the other, in pieces of at most `staging_bytes`: `send` gets the bank, the
    /// offset in it and the bytes, which lie in memory of the process, not in the map. Pieces are multiples of
    /// [`ALIGNMENT`] and never larger than [`STAGING_BYTES`]; the least is one of [`ALIGNMENT`].
    ///
    /// # Errors
    /// The first one of `send`, after which nothing more is sent.
    pub fn upload<E>(
        &self,
        staging_bytes: usize,
        progress: Progress<'_>,
        mut send: impl FnMut(u8, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let alignment = ALIGNMENT as usize;
        let piece = staging_bytes.clamp(alignment, STAGING_BYTES) / alignment * alignment;
        let total = self.bytes();
        // Devices pin what they are sent, and a large map that is pinned can hang the driver.
        let mut staging = Vec::new();
        let mut done = 0;
        for bank in 0..BANKS as u8 {
            let mut offset = 0;
            for bytes in self.bank(bank).chunks(piece) {
                staging.clear();
                staging.extend_from_slice(bytes);
                send(bank, offset, &staging)?;
                offset += bytes.len() as u64;
                done += bytes.len() as u64;
                progress(done, total);
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arena({} bytes)", self.bytes())
    }
}

fn range(offset: u64, bytes: u64) -> Range<usize> {
    offset as usize..(offset + bytes) as usize
}
