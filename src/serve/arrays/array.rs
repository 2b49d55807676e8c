//! One array, whatever way it came.

use std::borrow::Cow;

use bytes::Bytes;
use half::f16;

use super::dtype::{ByteOrder, Dtype, DtypeError};

/// Axes of an array; a batch of videos has five.
pub const MAX_DIMENSIONS: usize = 8;

/// An array in C order, little-endian. Its bytes are borrowed from the message where they lie there in this form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array<'a> {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Cow<'a, [u8]>,
}

/// Why bytes are not an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    #[error(transparent)]
    Dtype(#[from] DtypeError),
    #[error("it has {found} axes; at most {MAX_DIMENSIONS} are accepted")]
    Dimensions { found: usize },
    #[error("its shape {shape:?} has more elements than can be counted")]
    TooLarge { shape: Vec<usize> },
    #[error("its shape {shape:?} of '{descr}' needs {expected} bytes, but it has {found}")]
    Length { shape: Vec<usize>, descr: String, expected: usize, found: usize },
}

/// How the elements of foreign bytes lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrangement {
    pub bytes: ByteOrder,
    /// The first index runs fastest.
    pub fortran: bool,
}

impl<'a> Array<'a> {
    /// Wraps `data`, which is in C order and little-endian.
    ///
    /// # Errors
    /// The bytes are not as many as shape and type need.
    pub fn new(
        dtype: Dtype,
        shape: Vec<usize>,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Self, ArrayError> {
        let arrangement = Arrangement { bytes: ByteOrder::Little, fortran: false };
        Self::arranged(dtype, shape, data.into(), arrangement)
    }

    /// As [`Array::new`], of bytes that may lie in another order.
    pub(super) fn arranged(
        dtype: Dtype,
        shape: Vec<usize>,
        mut data: Cow<'a, [u8]>,
        arrangement: Arrangement,
    ) -> Result<Self, ArrayError> {
        if shape.len() > MAX_DIMENSIONS {
            return Err(ArrayError::Dimensions { found: shape.len() });
        }
        let counted = dtype.size().and_then(|size| {
            let bytes = shape.iter().try_fold(size, |bytes, axis| bytes.checked_mul(*axis))?;
            Some((size, bytes))
        });
        let Some((size, expected)) = counted else { return Err(ArrayError::TooLarge { shape }) };
        if data.len() != expected {
            let (descr, found) = (dtype.descr(), data.len());
            return Err(ArrayError::Length { shape, descr, expected, found });
        }
        if arrangement.bytes == ByteOrder::Big && dtype.unit() > 1 {
            data.to_mut().chunks_exact_mut(dtype.unit()).for_each(<[u8]>::reverse);
        }
        // One axis that is longer than 1 lies the same in both orders.
        if arrangement.fortran && shape.iter().filter(|size| **size > 1).count() > 1 {
            data = Cow::Owned(c_order(&shape, &data, size));
        }
        Ok(Self { dtype, shape, data })
    }

    /// An array of `values`, in C order.
    ///
    /// # Errors
    /// There are not as many values as the shape needs.
    pub fn of_f32(shape: Vec<usize>, values: &[f32]) -> Result<Array<'static>, ArrayError> {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array::new(Dtype::F32, shape, data)
    }

    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, in C order and little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// As [`Array::bytes`], for longer than this array: `message`, from which it was read, is shared where they lie there.
    pub fn share(&self, message: &Bytes) -> Bytes {
        match &self.data {
            Cow::Borrowed(data) if message.as_ptr_range().contains(&data.as_ptr()) => {
                message.slice_ref(data)
            }
            data => Bytes::copy_from_slice(data),
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.data.into_owned()
    }

    /// The elements as numbers; `None` for booleans and strings. Integers beyond 2^53 are rounded.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        macro_rules! values {
            ($type:ty) => {
                self.elements().map(|bytes| <$type>::from_le_bytes(bytes) as f64).collect()
            };
        }
        Some(match self.dtype {
            Dtype::Bool | Dtype::Text { .. } => return None,
            Dtype::U8 => values!(u8),
            Dtype::U16 => values!(u16),
            Dtype::U32 => values!(u32),
            Dtype::U64 => values!(u64),
            Dtype::I8 => values!(i8),
            Dtype::I16 => values!(i16),
            Dtype::I32 => values!(i32),
            Dtype::I64 => values!(i64),
            Dtype::F16 => self.elements().map(|bytes| f16::from_le_bytes(bytes).to_f64()).collect(),
            Dtype::F32 => values!(f32),
            Dtype::F64 => values!(f64),
        })
    }

    /// The elements as strings, without the zeros at their ends; `None` unless they are strings.
    pub fn texts(&self) -> Option<Vec<String>> {
        let Dtype::Text { chars } = self.dtype else { return None };
        let codes: Vec<u32> = self.elements().map(u32::from_le_bytes).collect();
        let text = |codes: &[u32]| {
            let end = codes.iter().rposition(|code| *code != 0).map_or(0, |last| last + 1);
            codes[..end].iter().map(|code| char::from_u32(*code)).collect::<Option<String>>()
        };
        codes.chunks_exact(chars.max(1)).map(text).collect()
    }

    fn elements<const BYTES: usize>(&self) -> impl Iterator<Item = [u8; BYTES]> {
        self.data.as_chunks::<BYTES>().0.iter().copied()
    }
}

/// Elements of `size` bytes whose first index runs fastest, put so that the last one does.
fn c_order(shape: &[usize], data: &[u8], size: usize) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(data.len());
    // Copies of a known length are single instructions.
    match size {
        1 => visit(shape, size, |at| ordered.push(data[at])),
        2 => visit(shape, size, |at| ordered.extend_from_slice(&data[at..at + 2])),
        4 => visit(shape, size, |at| ordered.extend_from_slice(&data[at..at + 4])),
        8 => visit(shape, size, |at| ordered.extend_from_slice(&data[at..at + 8])),
        _ => visit(shape, size, |at| ordered.extend_from_slice(&data[at..at + size])),
    }
    ordered
}

/// Calls `see` with where each element begins, whose first index runs fastest, in the order in which the last one does.
fn visit(shape: &[usize], size: usize, mut see: impl FnMut(usize)) {
    // Axes of one element change nothing.
    let mut axes = Vec::with_capacity(shape.len());
    let mut stride = size;
    for &length in shape.iter().filter(|length| **length != 1) {
        axes.push((length, stride));
        stride *= length;
    }
    let Some((length, stride)) = axes.pop() else { return see(0) };
    let rows: usize = axes.iter().map(|(length, _)| length).product();
    let (mut index, mut start) = (vec![0; axes.len()], 0);
    for _ in 0..rows {
        for number in 0..length {
            see(start + number * stride);
        }
        for (at, (length, stride)) in index.iter_mut().zip(&axes).rev() {
            *at += 1;
            start += stride;
            if *at < *length {
                break;
            }
            start -= *length * stride;
            *at = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_bytes_must_agree() {
        let array = Array::new(Dtype::U16, vec![2, 3], vec![0; 12]).unwrap();
        assert_eq!((array.dtype(), array.shape()), (Dtype::U16, &[2, 3][..]));
        let refused = |shape: Vec<usize>, bytes: usize| {
            Array::new(Dtype::F64, shape, vec![0; bytes]).unwrap_err().to_string()
        };
        assert!(refused(vec![2], 15).contains("[2] of '<f8' needs 16 bytes, but it has 15"));
        assert!(refused(vec![usize::MAX, 2], 0).contains("more elements"));
        assert!(refused(vec![1; 9], 8).contains("9 axes"));
        let huge = Dtype::Text { chars: usize::MAX };
        assert!(matches!(Array::new(huge, vec![], vec![]), Err(ArrayError::TooLarge { .. })));
        assert!(Array::new(Dtype::F64, vec![0, 5], vec![]).is_ok());
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        let one = |dtype, bytes: &[u8]| Array::new(dtype, vec![1], bytes).unwrap().numbers();
        assert_eq!(one(Dtype::U8, &[200]), Some(vec![200.0]));
        assert_eq!(one(Dtype::I8, &[200]), Some(vec![-56.0]));
        assert_eq!(one(Dtype::U16, &[1, 2]), Some(vec![513.0]));
        assert_eq!(one(Dtype::I16, &[0xFE, 0xFF]), Some(vec![-2.0]));
        assert_eq!(one(Dtype::U32, &[0xFF; 4]), Some(vec![4_294_967_295.0]));
        assert_eq!(one(Dtype::I32, &[0xFF; 4]), Some(vec![-1.0]));
        assert_eq!(one(Dtype::U64, &[0, 0, 0, 0, 1, 0, 0, 0]), Some(vec![4_294_967_296.0]));
        assert_eq!(one(Dtype::I64, &[0xFF; 8]), Some(vec![-1.0]));
        assert_eq!(one(Dtype::F16, &[0x00, 0x3E]), Some(vec![1.5]));
        assert_eq!(one(Dtype::F32, &0.1f32.to_le_bytes()), Some(vec![f64::from(0.1f32)]));
        assert_eq!(one(Dtype::F64, &0.1f64.to_le_bytes()), Some(vec![0.1]));
        assert_eq!(one(Dtype::Bool, &[1]), None);
    }

    #[test]
    fn big_endian_and_fortran_order_become_the_one_order() {
        // [[1, 2, 3], [4, 5, 6]], column by column.
        let data: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
        let arrangement = Arrangement { bytes: ByteOrder::Big, fortran: true };
        let array = Array::arranged(Dtype::U16, vec![2, 3], data.into(), arrangement).unwrap();
        assert_eq!(array.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let array = Array::arranged(Dtype::U8, vec![0, 2, 3], vec![].into(), arrangement).unwrap();
        assert!(array.numbers().unwrap().is_empty());
    }

    #[test]
    fn every_shape_and_size_is_put_in_order() {
        let shapes = [&[2usize, 3, 4][..], &[1, 2, 1, 5, 3], &[3, 1, 2], &[2, 2, 2, 2], &[7, 2]];
        for (shape, size) in
            shapes.into_iter().flat_map(|shape| [1, 2, 4, 8, 12].map(|s| (shape, s)))
        {
            let count: usize = shape.iter().product();
            // Of the element at an index, the number in the order in which the last axis runs fastest.
            let mut data = vec![0; count * size];
            for number in 0..count {
                let (mut rest, mut place, mut stride) = (number, 0, count);
                for length in shape.iter().rev() {
                    stride /= length;
                    place += rest % length * stride;
                    rest /= length;
                }
                data[place * size..][..size].fill(number as u8);
            }
            let expected: Vec<u8> = (0..count * size).map(|at| (at / size) as u8).collect();
            assert_eq!(c_order(shape, &data, size), expected, "{shape:?} of {size} bytes");
        }
    }

    #[test]
    fn strings_lose_the_zeros_at_their_end() {
        let code = |text: &str| text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
        let two: Vec<u8> = code("añ\0b\0\0");
        let array = Array::new(Dtype::Text { chars: 3 }, vec![2], two).unwrap();
        assert_eq!(array.texts().unwrap(), ["añ", "b"]);
        let none = Array::new(Dtype::Text { chars: 0 }, vec![usize::MAX], vec![]).unwrap();
        assert!(none.texts().unwrap().is_empty());
        let surrogate = 0xD800u32.to_le_bytes().to_vec();
        assert_eq!(Array::new(Dtype::Text { chars: 1 }, vec![1], surrogate).unwrap().texts(), None);
    }
}
