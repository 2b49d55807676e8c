//! What lies in DRAM, and how long the banks take to deliver it.

use super::Rates;
use super::cores::BANKS;
use crate::backend::blackhole::numerics::TileFormat;

/// Bytes that an operation moves from and to DRAM, by bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dram {
    bf16: [u64; BANKS],
    blocks: [u64; BANKS],
}

impl Dram {
    /// Adds pieces of equal size, which lie on the banks in turn.
    pub fn add(&mut self, format: TileFormat, pieces: u64, piece_bytes: u64) {
        let banks = match format {
            TileFormat::Bf16 => &mut self.bf16,
            TileFormat::Bfp8B | TileFormat::Bfp4B => &mut self.blocks,
        };
        let (each, left) = (pieces / BANKS as u64, pieces % BANKS as u64);
        for (bank, bytes) in (0..).zip(banks) {
            *bytes += (each + u64::from(bank < left)) * piece_bytes;
        }
    }

    /// Bytes of every bank.
    pub fn banks(&self) -> [u64; BANKS] {
        std::array::from_fn(|bank| self.bf16[bank] + self.blocks[bank])
    }

    /// Seconds of the bank that has the most to do.
    pub fn seconds(&self, rates: &Rates) -> f64 {
        let rate = |gigabytes: f64| gigabytes * 1e9 / BANKS as f64;
        let seconds = |bank: usize| {
            self.bf16[bank] as f64 / rate(rates.dram_bf16)
                + self.blocks[bank] as f64 / rate(rates.dram_bfp8)
        };
        (0..BANKS).map(seconds).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_bank_decides() {
        let rates = Rates { dram_bf16: 8.0, dram_bfp8: 4.0, ..Rates::default() };
        let mut dram = Dram::default();
        dram.add(TileFormat::Bf16, 9, 1000);
        assert_eq!(dram.banks(), [2000, 1000, 1000, 1000, 1000, 1000, 1000, 1000]);
        assert!((dram.seconds(&rates) - 2e-6).abs() < 1e-12);
        dram.add(TileFormat::Bfp8B, 16, 500);
        assert_eq!(dram.banks().iter().sum::<u64>(), 17_000);
        assert!((dram.seconds(&rates) - 4e-6).abs() < 1e-12);
    }
}
