//! The header of an npy file: a Python dictionary with three keys, written as Python would.

use super::dtype::DtypeError;

/// Longest header that is read; numpy's own limit.
pub const MAX_HEADER_BYTES: usize = 10_000;

/// What an npy file says about its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub descr: String,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

/// Why a header is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("its header has {found} bytes; at most {MAX_HEADER_BYTES} are accepted")]
    Long { found: usize },
    #[error("its header is no ASCII text")]
    NoText,
    #[error("its header has {found} at byte {at} where {expected} is needed")]
    Syntax { at: usize, found: String, expected: &'static str },
    #[error("its header has the key '{key}', which is not one of descr, fortran_order, shape")]
    UnknownKey { key: String },
    #[error("its header has the key '{key}' twice")]
    RepeatedKey { key: &'static str },
    #[error("its header has no '{key}'")]
    NoKey { key: &'static str },
    #[error(transparent)]
    Dtype(#[from] DtypeError),
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        if bytes.len() > MAX_HEADER_BYTES {
            return Err(HeaderError::Long { found: bytes.len() });
        }
        if !bytes.is_ascii() {
            return Err(HeaderError::NoText);
        }
        let mut scanner = Scanner { bytes, at: 0 };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        scanner.expect(b'{', "'{'")?;
        while !scanner.skip(b'}') {
            let key = scanner.string()?;
            scanner.expect(b':', "':'")?;
            match key.as_str() {
                "descr" => set(&mut descr, scanner.descr()?, "descr")?,
                "fortran_order" => set(&mut fortran_order, scanner.boolean()?, "fortran_order")?,
                "shape" => set(&mut shape, scanner.tuple()?, "shape")?,
                _ => return Err(HeaderError::UnknownKey { key: key.chars().take(32).collect() }),
            }
            if !scanner.skip(b',') {
                scanner.expect(b'}', "',' or '}'")?;
                break;
            }
        }
        scanner.end()?;
        Ok(Self {
            descr: descr.ok_or(HeaderError::NoKey { key: "descr" })?,
            fortran_order: fortran_order.ok_or(HeaderError::NoKey { key: "fortran_order" })?,
            shape: shape.ok_or(HeaderError::NoKey { key: "shape" })?,
        })
    }
}

fn set<T>(slot: &mut Option<T>, value: T, key: &'static str) -> Result<(), HeaderError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(HeaderError::RepeatedKey { key }),
    }
}

/// Reads literals of Python from ASCII text.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        let spaces = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += spaces.count();
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn refuse<T>(&mut self, expected: &'static str) -> Result<T, HeaderError> {
        let found =
            self.peek().map_or("its end".to_owned(), |byte| format!("'{}'", byte.escape_ascii()));
        Err(HeaderError::Syntax { at: self.at, found, expected })
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), HeaderError> {
        if self.skip(byte) { Ok(()) } else { self.refuse(expected) }
    }

    fn end(&mut self) -> Result<(), HeaderError> {
        if self.peek().is_none() { Ok(()) } else { self.refuse("the end") }
    }

    /// Everything before the first byte that is not `part`.
    fn run(&mut self, part: impl Fn(u8) -> bool) -> String {
        let text: String = self.bytes[self.at..]
            .iter()
            .take_while(|byte| part(**byte))
            .map(|byte| char::from(*byte))
            .collect();
        self.at += text.len();
        text
    }

    /// A string without escapes, which neither keys nor types have.
    fn string(&mut self) -> Result<String, HeaderError> {
        let quote = if self.skip(b'\'') {
            b'\''
        } else if self.skip(b'"') {
            b'"'
        } else {
            return self.refuse("a string");
        };
        let text = self.run(|byte| byte != quote && byte != b'\\');
        self.expect(quote, "the quote at the end of a string")?;
        Ok(text)
    }

    fn descr(&mut self) -> Result<String, HeaderError> {
        match self.peek() {
            Some(b'[') => Err(DtypeError::Structured.into()),
            _ => self.string(),
        }
    }

    fn boolean(&mut self) -> Result<bool, HeaderError> {
        self.peek();
        let start = self.at;
        match self.run(|byte| byte.is_ascii_alphabetic()).as_str() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => {
                self.at = start;
                self.refuse("True or False")
            }
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>, HeaderError> {
        self.expect(b'(', "'('")?;
        let mut sizes = Vec::new();
        while !self.skip(b')') {
            self.peek();
            let start = self.at;
            let Ok(size) = self.run(|byte| byte.is_ascii_digit()).parse() else {
                self.at = start;
                return self.refuse("the length of an axis");
            };
            sizes.push(size);
            if !self.skip(b',') {
                self.expect(b')', "',' or ')'")?;
                break;
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Header::parse(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn headers_of_numpy_are_read() {
        let header = |shape: &str| {
            let text =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}  \n");
            Header::parse(text.as_bytes()).unwrap()
        };
        assert_eq!(header("(1, 16, 7)").shape, [1, 16, 7]);
        assert_eq!(header("(16,)").shape, [16]);
        assert_eq!(header("()").shape, [0; 0]);
        let other = br#"{"shape":(3,4),"fortran_order":True,"descr":">U5"}"#;
        let expected = Header { descr: ">U5".to_owned(), fortran_order: true, shape: vec![3, 4] };
        assert_eq!(Header::parse(other), Ok(expected));
    }

    #[test]
    fn other_headers_are_refused_where_they_differ() {
        assert!(refused("").contains("its end at byte 0 where '{' is needed"));
        assert!(refused("{'descr' '<f4'}").contains(r"'\'' at byte 9 where ':' is needed"));
        assert!(refused("{'descr': [('a', '<f4')]}").contains("records"));
        assert!(refused("{'shape': (3, -4)}").contains("'-' at byte 14 where the length"));
        assert!(refused("{'shape': (3 4)}").contains("',' or ')'"));
        assert!(refused("{'shape': (99999999999999999999,)}").contains("the length of an axis"));
        assert!(refused("{'fortran_order': 1}").contains("True or False"));
        assert!(refused("{'descr': '<f\\x34'}").contains("the quote"));
        assert!(refused("{'order': 'C'}").contains("'order'"));
        assert!(refused("{'descr': 'a', 'descr': 'b'}").contains("'descr' twice"));
        assert!(refused("{'descr': 'a', 'shape': ()}").contains("no 'fortran_order'"));
        assert!(refused("{} {}").contains("the end"));
        assert!(refused("{'descr': '<f4'").contains("its end"));
        assert!(refused("é").contains("no ASCII"));
        assert!(refused(&" ".repeat(MAX_HEADER_BYTES + 1)).contains("10001 bytes"));
        let deep = "(".repeat(MAX_HEADER_BYTES - 10);
        assert!(refused(&format!("{{'shape': {deep}")).contains("the length of an axis"));
    }
}
