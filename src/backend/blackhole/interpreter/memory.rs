//! Memory that knows what was written to it.

use std::ops::Range;

/// Bytes that are marked together: no value is smaller.
const UNIT: usize = 2;

/// Something is there, be it a zero that only fills up.
const SET: u8 = 1;
/// A value is there.
const VALUE: u8 = 2;
/// It was sent from another core, and nobody has read it.
const UNREAD: u8 = 4;

/// L1 of a core, or a buffer in DRAM. Nothing is there at first.
pub struct Memory {
    bytes: Vec<u8>,
    /// One for every [`UNIT`] bytes.
    marks: Vec<u8>,
}

/// Bytes on their way, with their marks: what is not written anywhere is not written where it arrives.
pub struct Piece {
    bytes: Vec<u8>,
    marks: Vec<u8>,
}

/// The first place of a read that nobody has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritten {
    pub address: usize,
    /// Whether it was filled with zeros.
    pub zeroed: bool,
}

fn units(address: usize, bytes: usize) -> Range<usize> {
    address / UNIT..(address + bytes).div_ceil(UNIT)
}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], marks: vec![0; bytes.div_ceil(UNIT)] }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes all of which are parts of values.
    pub fn values(&mut self, address: usize, bytes: usize) -> Result<&[u8], Unwritten> {
        let range = units(address, bytes);
        let marks = &mut self.marks[range.clone()];
        if let Some(at) = marks.iter().position(|mark| mark & VALUE == 0) {
            let (address, zeroed) = ((range.start + at) * UNIT, marks[at] & SET != 0);
            return Err(Unwritten { address, zeroed });
        }
        for mark in marks {
            *mark &= !UNREAD;
        }
        Ok(&self.bytes[address..address + bytes])
    }

    /// Bytes that something is in, or the first place where nothing is.
    pub fn filled(&self, address: usize, bytes: usize) -> Result<&[u8], usize> {
        let range = units(address, bytes);
        match self.marks[range.clone()].iter().position(|mark| mark & SET == 0) {
            Some(at) => Err((range.start + at) * UNIT),
            None => Ok(&self.bytes[address..address + bytes]),
        }
    }

    pub fn set_values(&mut self, address: usize, values: &[u8]) {
        self.bytes[address..address + values.len()].copy_from_slice(values);
        self.marks[units(address, values.len())].fill(SET | VALUE);
    }

    pub fn zero(&mut self, address: usize, bytes: usize) {
        self.bytes[address..address + bytes].fill(0);
        self.marks[units(address, bytes)].fill(SET);
    }

    pub fn take(&mut self, address: usize, bytes: usize) -> Piece {
        let marks = &mut self.marks[units(address, bytes)];
        for mark in marks.iter_mut() {
            *mark &= !UNREAD;
        }
        let marks = marks.to_vec();
        Piece { bytes: self.bytes[address..address + bytes].to_vec(), marks }
    }

    pub fn put(&mut self, address: usize, piece: &Piece) {
        self.bytes[address..address + piece.bytes.len()].copy_from_slice(&piece.bytes);
        self.marks[units(address, piece.bytes.len())].copy_from_slice(&piece.marks);
    }

    /// Remembers of the values that they came from another core and have not been read.
    pub fn mark_unread(&mut self, address: usize, bytes: usize) {
        for mark in &mut self.marks[units(address, bytes)] {
            if *mark & VALUE != 0 {
                *mark |= UNREAD;
            }
        }
    }

    /// Whether the values of `piece` would take the place of such that were sent here and not read, all of them.
    pub fn is_unread_below(&self, address: usize, piece: &Piece) -> bool {
        let marks = &self.marks[units(address, piece.bytes.len())];
        marks.iter().zip(&piece.marks).all(|(old, new)| new & VALUE == 0 || old & UNREAD != 0)
    }
}

impl Piece {
    /// Bytes that all are parts of values.
    pub fn of_values(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), marks: vec![SET | VALUE; bytes.len().div_ceil(UNIT)] }
    }

    pub fn has_values(&self) -> bool {
        self.marks.iter().any(|mark| mark & VALUE != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_is_read() {
        let mut memory = Memory::new(64);
        memory.set_values(4, &[1, 2, 3, 4]);
        memory.zero(8, 2);
        assert_eq!(memory.values(4, 4), Ok(&[1, 2, 3, 4][..]));
        assert_eq!(memory.values(4, 8), Err(Unwritten { address: 8, zeroed: true }));
        assert_eq!(memory.values(2, 4), Err(Unwritten { address: 2, zeroed: false }));
        assert_eq!(memory.filled(4, 6), Ok(&[1, 2, 3, 4, 0, 0][..]));
        assert_eq!(memory.filled(4, 8), Err(10));
    }

    #[test]
    fn what_moves_takes_its_marks_along() {
        let mut memory = Memory::new(64);
        memory.set_values(0, &[7; 4]);
        memory.zero(4, 4);
        memory.set_values(32, &[9; 16]);
        let piece = memory.take(0, 16);
        assert!(piece.has_values() && !memory.take(4, 4).has_values());
        memory.put(32, &piece);
        assert_eq!(memory.values(32, 4), Ok(&[7; 4][..]));
        assert_eq!(memory.values(36, 2), Err(Unwritten { address: 36, zeroed: true }));
        assert_eq!(memory.values(40, 2), Err(Unwritten { address: 40, zeroed: false }));
    }

    #[test]
    fn what_was_sent_is_unread_until_it_is_read() {
        let mut memory = Memory::new(16);
        let piece = Piece::of_values(&[1; 8]);
        assert!(!memory.is_unread_below(0, &piece));
        memory.put(0, &piece);
        memory.mark_unread(0, 8);
        assert!(memory.is_unread_below(0, &piece));
        memory.values(2, 2).unwrap();
        assert!(!memory.is_unread_below(0, &piece));
    }
}
