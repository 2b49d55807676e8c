//! A walk from record to record over a whole MCAP file, which looks at no message.
//!
//! It, and not the index at the end of the file, says where the chunks are: so a file without an index is read in the same way,
//! and an index that lies cannot hide anything.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use mcap::MAGIC;
use mcap::records::op;

use super::records::{ChunkHead, HEAD_LEN, head, message_time};
use crate::bag::error::BagError;
use crate::bag::limits::MAX_CHUNK_BYTES;

/// Bytes that are read of each record: its head, and the header of a chunk or a message.
const LOOK_LEN: usize = 96;
/// Messages that stand outside of chunks are read in runs of so many bytes.
const RUN_BYTES: u64 = 4 << 20;

/// A stretch of the file that is read at once.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Where its data begins: that of a chunk without the header.
    pub offset: u64,
    /// How many bytes are there.
    pub len: u64,
    /// Times of its first and last message, nanoseconds.
    pub start_ns: u64,
    pub end_ns: u64,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Messages outside of chunks.
    Run,
    Chunk(ChunkHead),
    /// A chunk that the file ends in.
    CutChunk(ChunkHead),
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With footer and magic.
    Finished { footer: u64 },
    /// Behind a whole record.
    Unfinished,
    /// Within a record: so many bytes are whole.
    Cut { whole: u64 },
}

pub(super) struct Scan {
    pub blocks: Vec<Block>,
    pub chunks: u64,
    /// Where the data section ends and the summary begins.
    pub data_end: Option<u64>,
    /// Places and lengths of metadata records.
    pub metadata: Vec<(u64, u64)>,
    pub end: End,
}

/// Walks over `file`, which has `len` bytes.
///
/// # Errors
/// A file that cannot be read, is no MCAP, or is whole but breaks off inside.
pub(super) fn scan(path: &Path, file: &File, len: u64) -> Result<Scan, BagError> {
    let mut walk = Walk {
        path,
        file,
        len,
        run: None,
        found: Scan {
            blocks: Vec::new(),
            chunks: 0,
            data_end: None,
            metadata: Vec::new(),
            end: End::Unfinished,
        },
    };
    walk.begin()?;
    walk.go()?;
    Ok(walk.found)
}

struct Walk<'a> {
    path: &'a Path,
    file: &'a File,
    len: u64,
    /// Messages outside of chunks that are being gathered.
    run: Option<Block>,
    found: Scan,
}

impl Walk<'_> {
    fn begin(&self) -> Result<(), BagError> {
        let mut magic = [0; MAGIC.len()];
        let read = self.len >= MAGIC.len() as u64;
        if read {
            self.file.read_exact_at(&mut magic, 0).map_err(BagError::io(self.path))?;
        }
        if magic != MAGIC {
            return Err(BagError::damaged(self.path, 0, "it does not begin as an MCAP file does"));
        }
        Ok(())
    }

    fn go(&mut self) -> Result<(), BagError> {
        let mut offset = MAGIC.len() as u64;
        let mut footer = None;
        while offset < self.len {
            let rest = self.len - offset;
            if let Some(at) = footer
                && rest == MAGIC.len() as u64
                && self.ends_with_magic()?
            {
                self.close_run();
                self.found.end = End::Finished { footer: at };
                return Ok(());
            }
            let mut look = [0; LOOK_LEN];
            let look = &mut look[..rest.min(LOOK_LEN as u64) as usize];
            self.file.read_exact_at(look, offset).map_err(BagError::io(self.path))?;
            let body_len = head(look).map(|(_, body_len)| body_len);
            let next = body_len
                .and_then(|body_len| body_len.checked_add(offset + HEAD_LEN as u64))
                .filter(|next| *next <= self.len);
            let Some(next) = next else {
                return self.cut(offset, look);
            };
            let opcode = look[0];
            if opcode == op::FOOTER {
                footer = Some(offset);
            }
            self.record(opcode, &look[HEAD_LEN..], offset, next)?;
            offset = next;
        }
        self.close_run();
        Ok(())
    }

    /// A whole record from `offset` to `next`; `look` is the beginning of its body.
    fn record(&mut self, opcode: u8, look: &[u8], offset: u64, next: u64) -> Result<(), BagError> {
        let body = offset + HEAD_LEN as u64;
        let damaged = |reason: &str| BagError::damaged(self.path, offset, reason);
        match opcode {
            op::CHUNK | op::MESSAGE if self.found.data_end.is_some() => {
                return Err(damaged("messages behind the end of the data"));
            }
            op::CHUNK => {
                self.close_run();
                let header =
                    ChunkHead::read(look).ok_or_else(|| damaged("a chunk without its header"))?;
                if header.len.checked_add(header.packed_len) != Some(next - body) {
                    return Err(damaged("the length of a chunk is not that of its record"));
                }
                self.found.chunks += 1;
                self.push_chunk(body, header, Kind::Chunk)?;
            }
            op::MESSAGE => {
                let time =
                    message_time(look).ok_or_else(|| damaged("a message without its header"))?;
                self.add_to_run(offset, next, Some(time));
            }
            op::SCHEMA | op::CHANNEL if self.found.data_end.is_none() => {
                self.add_to_run(offset, next, None);
            }
            op::METADATA => self.found.metadata.push((body, next - body)),
            op::DATA_END => {
                self.close_run();
                self.found.data_end = Some(next);
            }
            _ => {}
        }
        Ok(())
    }

    fn push_chunk(
        &mut self,
        body: u64,
        header: ChunkHead,
        kind: impl FnOnce(ChunkHead) -> Kind,
    ) -> Result<(), BagError> {
        let bytes = header.packed_len.max(header.unpacked_len);
        if bytes > MAX_CHUNK_BYTES {
            let (path, what) = (self.path.into(), "a chunk");
            return Err(BagError::TooLarge { path, what, bytes, limit: MAX_CHUNK_BYTES });
        }
        let offset = body + header.len;
        let (start_ns, end_ns) = (header.start_ns, header.end_ns);
        if start_ns > end_ns {
            let reason = format!("a chunk that goes from {start_ns} to {end_ns} ns");
            return Err(BagError::damaged(self.path, offset, reason));
        }
        let len = header.packed_len.min(self.len - offset);
        self.found.blocks.push(Block { offset, len, start_ns, end_ns, kind: kind(header) });
        Ok(())
    }

    fn add_to_run(&mut self, offset: u64, next: u64, time: Option<u64>) {
        let run = self.run.get_or_insert(Block {
            offset,
            len: 0,
            start_ns: u64::MAX,
            end_ns: 0,
            kind: Kind::Run,
        });
        run.len = next - run.offset;
        if let Some(time) = time {
            run.start_ns = run.start_ns.min(time);
            run.end_ns = run.end_ns.max(time);
        }
        if run.len >= RUN_BYTES {
            self.close_run();
        }
    }

    fn close_run(&mut self) {
        self.found.blocks.extend(self.run.take());
    }

    /// The record at `offset` is not whole; `look` is its beginning.
    fn cut(&mut self, offset: u64, look: &[u8]) -> Result<(), BagError> {
        self.close_run();
        let finished = self.len >= offset + MAGIC.len() as u64 && self.ends_with_magic()?;
        if finished {
            let reason = "no record begins here, although the file was finished";
            return Err(BagError::damaged(self.path, offset, reason));
        }
        self.found.end = End::Cut { whole: offset };
        let Some((op::CHUNK, stated_len)) = head(look) else {
            return Ok(());
        };
        match ChunkHead::read(&look[HEAD_LEN..]) {
            Some(header) if header.len.checked_add(header.packed_len) == Some(stated_len) => {
                self.push_chunk(offset + HEAD_LEN as u64, header, Kind::CutChunk)
            }
            _ => Ok(()),
        }
    }

    fn ends_with_magic(&self) -> Result<bool, BagError> {
        let mut magic = [0; MAGIC.len()];
        let at = self.len - MAGIC.len() as u64;
        self.file.read_exact_at(&mut magic, at).map_err(BagError::io(self.path))?;
        Ok(magic == MAGIC)
    }
}
