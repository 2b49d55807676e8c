//! How large an arena is and how evenly it lies in the banks.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::plan::{ArenaPlan, PlannedPart};
use super::{BANKS, PACKET_BYTES};

/// Sizes of an arena, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArenaReport {
    /// Name of the policy that chose the formats.
    pub policy: &'static str,
    /// Everything, with what aligns it.
    pub total: Banks,
    /// Bytes that are tiles or blobs.
    pub payload: u64,
    /// Bytes that are zero because the next thing begins later.
    pub padding: u64,
    pub parts: Vec<PartReport>,
    pub blobs: Banks,
    /// How many blobs there are.
    pub blob_count: usize,
}

/// Sizes of a part, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartReport {
    pub name: String,
    pub streams: usize,
    pub packets: usize,
    /// Its packets.
    pub packet_bytes: Banks,
    /// Bytes of tiles. What fills tiles at the edge of a matrix counts as theirs.
    pub payload: u64,
    pub padding: u64,
    /// By the name of the format.
    pub formats: BTreeMap<&'static str, FormatReport>,
}

/// What of a part has one format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FormatReport {
    pub shards: usize,
    pub tiles: u64,
    pub bytes: u64,
}

/// A number of bytes in each bank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Banks {
    pub bytes: u64,
    pub banks: [u64; BANKS],
    /// The fullest bank over the mean of all: the share of time that the others wait for it, above 1.
    pub balance: f64,
}

impl Banks {
    fn new(banks: [u64; BANKS]) -> Self {
        let bytes: u64 = banks.iter().sum();
        let largest = banks.into_iter().max().unwrap_or_default();
        // Nothing at all is balanced.
        let balance = if bytes == 0 { 1.0 } else { (largest * BANKS as u64) as f64 / bytes as f64 };
        Self { bytes, banks, balance }
    }
}

impl ArenaPlan {
    pub fn report(&self) -> ArenaReport {
        let parts: Vec<PartReport> = self.parts().iter().map(part_report).collect();
        let mut blobs = [0; BANKS];
        for blob in self.blobs() {
            blobs[usize::from(blob.bank)] += blob.bytes.len() as u64;
        }
        let blobs = Banks::new(blobs);
        let payload = parts.iter().map(|part| part.payload).sum::<u64>() + blobs.bytes;
        let total = Banks::new(std::array::from_fn(|bank| self.bank_bytes(bank as u8)));
        ArenaReport {
            policy: self.policy.name(),
            padding: total.bytes - payload,
            total,
            payload,
            parts,
            blobs,
            blob_count: self.blobs().len(),
        }
    }
}

fn part_report(part: &PlannedPart) -> PartReport {
    let banks = std::array::from_fn(|bank| {
        let range = part.range(bank as u8);
        range.end - range.start
    });
    let packet_bytes = Banks::new(banks);
    let mut formats: BTreeMap<&'static str, FormatReport> = BTreeMap::new();
    for shard in part.streams.iter().flat_map(|stream| &stream.shards) {
        let format = formats.entry(shard.format.name()).or_default();
        format.shards += 1;
        format.tiles += shard.tiles as u64;
        format.bytes += (shard.tiles * shard.format.tile_bytes()) as u64;
    }
    let payload = formats.values().map(|format| format.bytes).sum();
    PartReport {
        name: part.name.clone(),
        streams: part.streams.len(),
        packets: part.all_packets().count(),
        padding: packet_bytes.bytes - payload,
        packet_bytes,
        payload,
        formats,
    }
}

impl fmt::Display for ArenaReport {
    /// A table, a line each for parts, blobs and all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, banks: &Banks, padding: u64| {
            write!(
                f,
                "{name:<16} {:>10.3} {:>10.3} {:>8.3}",
                megabytes(banks.bytes),
                megabytes(padding),
                banks.balance
            )?;
            banks.banks.iter().try_for_each(|bank| write!(f, " {:>9.3}", megabytes(*bank)))?;
            writeln!(f)
        };
        writeln!(f, "Arena, {} (MB; packets of {PACKET_BYTES} bytes)", self.policy)?;
        write!(f, "{:<16} {:>10} {:>10} {:>8}", "", "size", "padding", "balance")?;
        (0..BANKS).try_for_each(|bank| write!(f, " {:>9}", format!("bank {bank}")))?;
        writeln!(f)?;
        for part in &self.parts {
            line(f, &part.name, &part.packet_bytes, part.padding)?;
        }
        line(f, "blobs", &self.blobs, 0)?;
        line(f, "all", &self.total, self.padding)?;
        for part in &self.parts {
            for (format, FormatReport { shards, tiles, bytes }) in &part.formats {
                writeln!(
                    f,
                    "{}: {format}: {shards} shards, {tiles} tiles, {:.3} MB",
                    part.name,
                    megabytes(*bytes)
                )?;
            }
        }
        Ok(())
    }
}
