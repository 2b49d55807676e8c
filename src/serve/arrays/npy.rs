//! The npy format: a magic, a version, a header, and the elements.

use super::array::{Arrangement, Array, ArrayError};
use super::dtype::{Dtype, DtypeError};
use super::npy_header::{Header, HeaderError};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The elements begin at a multiple of it.
const ALIGNMENT: usize = 64;

/// Room that numpy leaves for the first length of a shape to grow in place, in digits.
const GROWTH_DIGITS: usize = 21;

/// Why bytes are no npy file that is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    #[error("it does not begin as npy files do")]
    Magic,
    #[error("it is of npy version {major}.{minor}; accepted: 1.0, 2.0, 3.0")]
    Version { major: u8, minor: u8 },
    #[error("it is cut off in its header")]
    Cut,
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Dtype(#[from] DtypeError),
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// The array of an npy file. Its elements are copied only if they lie in another order.
///
/// # Errors
/// It is none, or its elements are objects or records.
pub fn read(bytes: &[u8]) -> Result<Array<'_>, NpyError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
    let ([major, minor], rest) = rest.split_first_chunk().ok_or(NpyError::Cut)?;
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::Cut)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        (2 | 3, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::Cut)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        (&major, &minor) => return Err(NpyError::Version { major, minor }),
    };
    let (header, data) = rest.split_at_checked(length).ok_or(NpyError::Cut)?;
    let header = Header::parse(header)?;
    let (dtype, bytes) = Dtype::parse(&header.descr)?;
    let arrangement = Arrangement { bytes, fortran: header.fortran_order };
    Ok(Array::arranged(dtype, header.shape, data.into(), arrangement)?)
}

/// The npy file of an array, as numpy writes it.
pub fn write(array: &Array<'_>) -> Vec<u8> {
    let sizes: Vec<String> = array.shape().iter().map(usize::to_string).collect();
    let shape = match sizes.as_slice() {
        [only] => format!("({only},)"),
        sizes => format!("({})", sizes.join(", ")),
    };
    let descr = array.dtype().descr();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let growth = sizes.first().map_or(0, |first| GROWTH_DIGITS.saturating_sub(first.len()));
    header.extend(std::iter::repeat_n(' ', growth));
    // Magic, version and length before it, a line feed behind it. At most 8 axes keep it below 64 KB.
    let before = MAGIC.len() + 4;
    let unpadded = before + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    header.push('\n');

    let mut file = Vec::with_capacity(before + header.len() + array.bytes().len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&[1, 0]);
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(array.bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for shape in [vec![], vec![4], vec![2, 0, 3], vec![1, 16, 7]] {
            let values: Vec<f32> = (0..shape.iter().product()).map(|i| i as f32 - 2.5).collect();
            let array = Array::of_f32(shape, &values).unwrap();
            let file = write(&array);
            assert_eq!((file.len() - array.bytes().len()) % ALIGNMENT, 0);
            assert_eq!(read(&file), Ok(array));
        }
    }

    #[test]
    fn damaged_files_are_named() {
        let file = write(&Array::of_f32(vec![2], &[1.0, 2.0]).unwrap());
        let changed = |at: usize, byte: u8| {
            let mut file = file.clone();
            file[at] = byte;
            read(&file).unwrap_err()
        };
        assert_eq!(changed(0, 0), NpyError::Magic);
        assert_eq!(changed(6, 4), NpyError::Version { major: 4, minor: 0 });
        assert_eq!(changed(9, 9), NpyError::Cut);
        assert!(matches!(changed(11, b'x'), NpyError::Header(_)));
        let cut = read(&file[..file.len() - 1]).unwrap_err().to_string();
        assert!(cut.contains("needs 8 bytes, but it has 7"), "{cut}");
        let longer = [&file[..], &[0]].concat();
        assert!(read(&longer).unwrap_err().to_string().contains("but it has 9"));
        for end in 0..10 {
            assert!(matches!(read(&file[..end]), Err(NpyError::Magic | NpyError::Cut)), "{end}");
        }
    }
}
