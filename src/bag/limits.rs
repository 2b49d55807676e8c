//! Sizes beyond which a bag is refused, so that a damaged or a hostile one does not take all memory or the disk.

/// `metadata.yaml`, also where it is stored inside of a bag file.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;
/// Files of one bag.
pub const MAX_FILES: usize = 100_000;
/// Topics of one bag.
pub const MAX_TOPICS: usize = 65_536;
/// One chunk of an MCAP file, packed and unpacked; recorders make chunks of a few MB.
pub const MAX_CHUNK_BYTES: u64 = 1 << 30;
/// Summary of an MCAP file.
pub const MAX_SUMMARY_BYTES: u64 = 1 << 30;
/// One message that is compressed on its own, unpacked: twice the largest frame that a policy takes, in 16-bit RGBA.
pub const MAX_MESSAGE_BYTES: u64 = 256 << 20;
/// Messages that are held back because an earlier one may still come, all together.
pub const MAX_WAITING_BYTES: u64 = 4 << 30;
/// One bag file that is compressed as a whole, unpacked.
pub const MAX_UNPACKED_FILE_BYTES: u64 = 256 << 30;
/// What is left free on a disk, by files that are unpacked there and by recordings.
pub const RESERVED_DISK_BYTES: u64 = 1 << 30;
/// A bag that [`super::Bag::read`] takes into memory whole.
pub const MAX_BAG_BYTES: u64 = 1 << 30;
