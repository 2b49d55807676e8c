//! Whether the compressed part of a JPEG holds exactly the blocks that its header promises.
//!
//! The Huffman codes are walked without computing pixels. Data that ends before its last block, codes that do not
//! exist, blocks of more than 64 values, lost restart markers and data left over are found. What cannot be seen is
//! damage after which the codes fall into step again with as many blocks as before (a third of all places where a few
//! bytes of a noisy picture are overwritten: JPEG has no checksum), and anything in files that are progressive, or that
//! rely on Huffman tables they do not carry (some MJPEG streams): those have the decoder's own checks alone.

/// Values of a block.
const BLOCK: usize = 64;
/// Run of sixteen zeroes: the one code without a value that does not end its block.
const ZERO_RUN: u8 = 0xF0;

/// One table: symbols in the order of their codes.
#[derive(Clone)]
struct Huffman {
    /// Codes of each length, 1 to 16 bits.
    counts: [u8; 16],
    symbols: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Component {
    id: u8,
    horizontal: usize,
    vertical: usize,
}

#[derive(Default)]
struct Header {
    width: usize,
    height: usize,
    components: Vec<Component>,
    dc: [Option<Huffman>; 4],
    ac: [Option<Huffman>; 4],
    /// MCUs between restart markers; 0 for none.
    restart: usize,
}

/// A component of a scan and its tables.
struct Part<'a> {
    component: Component,
    dc: &'a Huffman,
    ac: &'a Huffman,
}

/// Walks all scans.
///
/// # Errors
/// What does not fit, in words.
pub(super) fn check(data: &[u8]) -> Result<(), String> {
    let mut header = Header::default();
    let mut scanned = 0;
    let mut at = 2;
    loop {
        while data.get(at) == Some(&0xFF) && data.get(at + 1) == Some(&0xFF) {
            at += 1;
        }
        let (Some(0xFF), Some(&marker)) = (data.get(at), data.get(at + 1)) else {
            return Err(format!("there is no marker at byte {at}"));
        };
        at += 2;
        match marker {
            0xD9 => break,
            0x01 | 0xD0..=0xD7 => continue,
            _ => {}
        }
        let segment = segment(data, at).ok_or_else(|| format!("the segment at {at} is cut off"))?;
        at += segment.len() + 2;
        let short = || format!("the segment of marker {marker:02x} is too short");
        match marker {
            0xC0 | 0xC1 if !header.components.is_empty() => {
                return Err("there are two frames".to_owned());
            }
            0xC0 | 0xC1 => header.frame(segment).ok_or_else(short)?,
            0xC4 => header.tables(segment).ok_or_else(short)?,
            // Progressive and the rarer kinds.
            0xC2..=0xCF => return Ok(()),
            0xDD => header.restart = number(segment, 0).ok_or_else(short)?,
            0xDA => {
                let Some(parts) = header.parts(segment).ok_or_else(short)? else {
                    return Ok(());
                };
                scanned += parts.len();
                at = walk(data, at, &header, &parts)?;
            }
            _ => {}
        }
    }
    if scanned == header.components.len() {
        Ok(())
    } else {
        Err(format!("{scanned} of {} colour components are there", header.components.len()))
    }
}

/// A segment without its length.
fn segment(data: &[u8], at: usize) -> Option<&[u8]> {
    data.get(at + 2..at + number(data, at)?)
}

fn number(data: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?])))
}

impl Header {
    fn frame(&mut self, segment: &[u8]) -> Option<()> {
        self.height = number(segment, 1)?;
        self.width = number(segment, 3)?;
        let count = usize::from(*segment.get(5)?);
        let described = segment.get(6..6 + 3 * count)?.chunks_exact(3);
        self.components = described
            .map(|c| Component {
                id: c[0],
                horizontal: usize::from(c[1] >> 4).max(1),
                vertical: usize::from(c[1] & 15).max(1),
            })
            .collect();
        Some(())
    }

    fn tables(&mut self, mut segment: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = segment.split_first() {
            let counts: [u8; 16] = rest.get(..16)?.try_into().ok()?;
            let length = counts.iter().map(|&count| usize::from(count)).sum::<usize>();
            let symbols = rest.get(16..16 + length)?.to_vec();
            let tables = if kind >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            *tables.get_mut(usize::from(kind & 15))? = Some(Huffman { counts, symbols });
            segment = &rest[16 + length..];
        }
        Some(())
    }

    /// The components of a scan; `Some(None)` where a table is not in the file.
    fn parts(&self, segment: &[u8]) -> Option<Option<Vec<Part<'_>>>> {
        let count = usize::from(*segment.first()?);
        // A scan of nothing would be walked without reading anything.
        if count == 0 {
            return None;
        }
        let mut parts = Vec::new();
        for entry in segment.get(1..1 + 2 * count)?.chunks_exact(2) {
            let component = *self.components.iter().find(|c| c.id == entry[0])?;
            let dc = self.dc.get(usize::from(entry[1] >> 4))?;
            let ac = self.ac.get(usize::from(entry[1] & 15))?;
            let (Some(dc), Some(ac)) = (dc, ac) else {
                return Some(None);
            };
            parts.push(Part { component, dc, ac });
        }
        Some(Some(parts))
    }

    /// MCUs of a scan, and whether each holds one block only.
    fn units(&self, parts: &[Part]) -> (usize, bool) {
        let most = |side: fn(&Component) -> usize| self.components.iter().map(side).max();
        let horizontal = most(|c| c.horizontal).unwrap_or(1);
        let vertical = most(|c| c.vertical).unwrap_or(1);
        match parts {
            // Blocks of a component that stands alone are counted by its own size.
            [part] => {
                let width = (self.width * part.component.horizontal).div_ceil(horizontal);
                let height = (self.height * part.component.vertical).div_ceil(vertical);
                (width.div_ceil(8) * height.div_ceil(8), true)
            }
            _ => {
                let across = self.width.div_ceil(8 * horizontal);
                (across * self.height.div_ceil(8 * vertical), false)
            }
        }
    }
}

/// Walks one scan from its first byte; gives the place of the marker behind it.
fn walk(data: &[u8], start: usize, header: &Header, parts: &[Part]) -> Result<usize, String> {
    let (units, single) = header.units(parts);
    let mut bits = Bits { data, at: start, held: 0, count: 0 };
    for unit in 0..units {
        if header.restart != 0 && unit != 0 && unit % header.restart == 0 {
            bits.restart(unit / header.restart).map_err(|why| place(why, unit, units))?;
        }
        for part in parts {
            let c = part.component;
            let blocks = if single { 1 } else { c.horizontal * c.vertical };
            for _ in 0..blocks {
                block(&mut bits, part).map_err(|why| place(why, unit, units))?;
            }
        }
    }
    bits.marker().map_err(|why| place(why, units, units))
}

fn place(why: &str, unit: usize, units: usize) -> String {
    format!("{why} after {unit} of {units} blocks")
}

fn block(bits: &mut Bits, part: &Part) -> Result<(), &'static str> {
    let size = bits.symbol(part.dc)?;
    bits.skip(size)?;
    let mut filled = 1;
    while filled < BLOCK {
        let symbol = bits.symbol(part.ac)?;
        let (run, size) = (usize::from(symbol >> 4), symbol & 15);
        if size == 0 && symbol != ZERO_RUN {
            break;
        }
        filled += run + 1;
        bits.skip(size)?;
    }
    if filled > BLOCK { Err("a block has too many values") } else { Ok(()) }
}

/// The bits of a scan.
struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    held: u32,
    count: u32,
}

impl Bits<'_> {
    /// Takes in the next byte; what is held is used up.
    fn fill(&mut self) -> Result<(), &'static str> {
        let byte = *self.data.get(self.at).ok_or("the data ends")?;
        if byte == 0xFF {
            if self.data.get(self.at + 1) != Some(&0) {
                return Err("the data ends");
            }
            self.at += 1;
        }
        self.at += 1;
        self.held = u32::from(byte);
        self.count = 8;
        Ok(())
    }

    fn bit(&mut self) -> Result<u32, &'static str> {
        if self.count == 0 {
            self.fill()?;
        }
        self.count -= 1;
        Ok((self.held >> self.count) & 1)
    }

    fn skip(&mut self, bits: u8) -> Result<(), &'static str> {
        let mut left = u32::from(bits);
        while left > self.count {
            left -= self.count;
            self.fill()?;
        }
        self.count -= left;
        Ok(())
    }

    fn symbol(&mut self, table: &Huffman) -> Result<u8, &'static str> {
        let (mut code, mut first, mut before) = (0, 0, 0);
        for &count in &table.counts {
            let count = u32::from(count);
            code = code << 1 | self.bit()?;
            // Damaged tables may have more codes of a length than there are.
            let place = code.checked_sub(first).ok_or("a code does not exist")?;
            if place < count {
                let symbol = table.symbols.get((before + place) as usize);
                return symbol.copied().ok_or("a code does not exist");
            }
            before += count;
            first = (first + count) << 1;
        }
        Err("a code does not exist")
    }

    /// The place of the marker that must stand here; the bits left in the last byte fill it up.
    fn marker(&mut self) -> Result<usize, &'static str> {
        self.count = 0;
        while self.data.get(self.at..self.at + 2) == Some(&[0xFF; 2]) {
            self.at += 1;
        }
        match self.data.get(self.at..self.at + 2) {
            Some([0xFF, marker]) if *marker != 0 => Ok(self.at),
            _ => Err("data is left over"),
        }
    }

    fn restart(&mut self, number: usize) -> Result<(), &'static str> {
        let at = self.marker()?;
        if usize::from(self.data[at + 1]) != 0xD0 + (number - 1) % 8 {
            return Err("a restart marker is missing");
        }
        self.at = at + 2;
        Ok(())
    }
}
