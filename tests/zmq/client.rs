//! A REQ socket, as plain as it gets.

use std::io::{self, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything takes that is expected to happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    pub stream: TcpStream,
}

/// Greeting and READY of a socket of this type.
pub fn greeting(socket: &str) -> Vec<u8> {
    let mut bytes = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00NULL".to_vec();
    bytes.resize(64, 0);
    let body =
        [&b"\x05READY\x0bSocket-Type\0\0\0"[..], &[socket.len() as u8], socket.as_bytes()].concat();
    bytes.extend([4, body.len() as u8]);
    bytes.extend(body);
    bytes
}

/// The bytes of a message.
pub fn message(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![];
    write(&mut bytes, parts).expect("memory takes them");
    bytes
}

/// Writes a message; large parts go out from where they lie, as with libzmq.
fn write(out: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    for (index, part) in parts.iter().enumerate() {
        let more = u8::from(index + 1 < parts.len());
        out.write_all(&[&[2 | more][..], &(part.len() as u64).to_be_bytes()].concat())?;
        out.write_all(part)?;
    }
    Ok(())
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address, "REQ").unwrap()
    }

    pub fn try_connect(address: SocketAddr, socket: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        stream.write_all(&greeting(socket))?;
        // Its greeting and its READY.
        stream.read_exact(&mut [0; 64 + 27])?;
        Ok(Self { stream })
    }

    pub fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.send(&[b"", request]);
        let mut parts = self.receive().unwrap();
        assert_eq!((parts.len(), parts[0].len()), (2, 0));
        parts.remove(1)
    }

    /// Asks for a sign of life, and gets it.
    pub fn ping_and_pong(&mut self, context: &[u8; 2]) {
        self.stream.write_all(&[b"\x04\x09\x04PING\0\x0a", &context[..]].concat()).unwrap();
        let mut pong = [0; 9];
        self.stream.read_exact(&mut pong).unwrap();
        assert_eq!(&pong[..], [b"\x04\x07\x04PONG", &context[..]].concat());
    }

    pub fn send(&mut self, parts: &[&[u8]]) {
        let mut out = BufWriter::new(&self.stream);
        write(&mut out, parts).and_then(|()| out.flush()).unwrap();
    }

    pub fn receive(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut parts = vec![];
        loop {
            let mut flags = [0];
            self.stream.read_exact(&mut flags)?;
            let length = if flags[0] & 2 == 0 {
                let mut length = [0];
                self.stream.read_exact(&mut length)?;
                length[0].into()
            } else {
                let mut length = [0; 8];
                self.stream.read_exact(&mut length)?;
                u64::from_be_bytes(length) as usize
            };
            let mut part = vec![0; length];
            self.stream.read_exact(&mut part)?;
            parts.push(part);
            if flags[0] & 1 == 0 {
                return Ok(parts);
            }
        }
    }

    /// Whether the server has closed the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}
