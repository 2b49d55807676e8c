//! The requests of the protocol, as methods.

use std::io::PipeWriter;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::command::{OpenOptions, WorkerCommand};
use crate::deadlines::Deadlines;
use crate::error::{Error, Exit};
use crate::holders::{device_file, holder};
use crate::link::Link;
use crate::lock::DeviceLock;
use crate::protocol::{
    Allocated, Built, Captured, Empty, InputWrite, InputsWritten, Opened, Place, Program, Ran,
    Request, Telemetry,
};
use crate::staging::Staging;
use crate::start::start;
use crate::transfer;

/// Memory of the card: a line of `bytes` bytes. Parts of it begin and end at multiples of `granule`, or at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub id: u32,
    pub name: String,
    /// In each bank, or in the L1 of each core.
    pub address: u64,
    pub bytes: u64,
    pub granule: u64,
}

impl Buffer {
    pub(crate) fn label(&self) -> String {
        format!("buffer {} ('{}')", self.id, self.name)
    }
}

/// A card that is open, through its worker. Dropped, it closes the card and ends the worker, within seconds.
///
/// After an error that [ends the worker](Error::ends_worker) every call fails with [`Error::WorkerGone`].
pub struct Device {
    link: Link,
    staging: Staging,
    deadlines: Deadlines,
    opened: Opened,
    /// While it is open the worker lives.
    _lifeline: PipeWriter,
    /// Given back last: when the worker is gone.
    _lock: DeviceLock,
}

impl Device {
    /// Takes the lock of the card, starts a worker and opens the card.
    pub fn open(command: &WorkerCommand, options: &OpenOptions) -> Result<Self, Error> {
        let device = options.device_id;
        let mut lock = match &options.lock_dir {
            Some(dir) => DeviceLock::take(dir, device)?,
            None => DeviceLock::unshared()?,
        };
        let path = device_file(device);
        let may_be_held = options.lock_dir.is_some() && !options.beside_others;
        if let Some(pid) = holder(&path).filter(|_| may_be_held) {
            return Err(Error::Busy { device, pid: Some(pid), path });
        }
        let staging = Staging::new(options.staging_bytes)?;
        let lifeline = std::io::pipe();
        let (read, write) = lifeline.map_err(Error::system("the lifeline cannot be made"))?;
        let mut link = start(command, options.deadlines.hello, |pid| lock.name_worker(pid))?;
        let request = Request::Open(command.open_request(options));
        let descriptors = [staging.as_fd(), lock.as_fd(), read.as_fd()];
        let opened = link.call(&request, &descriptors, options.deadlines.open)?;
        Ok(Self {
            link,
            staging,
            deadlines: options.deadlines,
            opened,
            _lifeline: write,
            _lock: lock,
        })
    }

    /// What the worker has found.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Process of the worker.
    pub fn worker_pid(&self) -> u32 {
        self.link.pid()
    }

    /// Whether the worker has not been lost, as far as is known.
    pub fn is_alive(&self) -> bool {
        self.link.is_alive()
    }

    pub fn allocate(&mut self, name: &str, place: Place) -> Result<Buffer, Error> {
        let request = Request::Allocate { name, place };
        let reply: Allocated = self.link.call(&request, &[], self.deadlines.allocate)?;
        let Allocated { buffer: id, address, bytes, granule } = reply;
        if granule == 0 || bytes == 0 {
            let reason = format!("a buffer of {bytes} bytes in granules of {granule}");
            return Err(self.link.reject(request.name(), reason));
        }
        Ok(Buffer { id, name: name.to_owned(), address, bytes, granule })
    }

    /// Writes to a buffer, before the first capture.
    pub fn upload(&mut self, buffer: &Buffer, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let staging = self.staging.bytes();
        for piece in transfer::pieces("upload", buffer, offset, bytes.len(), staging)? {
            let offset = offset + piece.start as u64;
            let staging = self.staging.write(0, &bytes[piece]);
            let request = Request::Upload { buffer: buffer.id, offset, staging };
            let Empty {} = self.link.call(&request, &[], self.deadlines.transfer)?;
        }
        Ok(())
    }

    /// Reads from a buffer.
    pub fn read(&mut self, buffer: &Buffer, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let staging = self.staging.bytes();
        for piece in transfer::pieces("read", buffer, offset, bytes.len(), staging)? {
            let offset = offset + piece.start as u64;
            let staging = crate::protocol::StagingPart { offset: 0, bytes: piece.len() };
            let request = Request::Read { buffer: buffer.id, offset, staging };
            let Empty {} = self.link.call(&request, &[], self.deadlines.transfer)?;
            self.staging.read(&mut bytes[piece]);
        }
        Ok(())
    }

    /// Makes a program; its number. Its kernels are compiled when it first runs.
    pub fn build(&mut self, program: &Program) -> Result<u32, Error> {
        let request = Request::Build { program };
        let Built { program } = self.link.call(&request, &[], self.deadlines.build)?;
        Ok(program)
    }

    /// Runs programs one after the other; the time that they took. In a capture they are recorded only.
    pub fn run(&mut self, programs: &[u32]) -> Result<Duration, Error> {
        let request = Request::Run { programs };
        let Ran { nanoseconds } = self.link.call(&request, &[], self.deadlines.run)?;
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// From here on the worker allocates nothing more.
    pub fn begin_capture(&mut self) -> Result<(), Error> {
        let Empty {} = self.link.call(&Request::BeginCapture {}, &[], self.deadlines.capture)?;
        Ok(())
    }

    /// Number of the trace.
    pub fn end_capture(&mut self) -> Result<u32, Error> {
        let Captured { trace } =
            self.link.call(&Request::EndCapture {}, &[], self.deadlines.capture)?;
        Ok(trace)
    }

    /// Writes to buffers on queue 1; the event that a replay waits for. Together they have to fit the staging memory.
    pub fn write_inputs(&mut self, inputs: &[(&Buffer, u64, &[u8])]) -> Result<u64, Error> {
        const REQUEST: &str = "write_inputs";
        let total = inputs.iter().map(|(_, _, bytes)| bytes.len()).sum::<usize>();
        if total > self.staging.bytes() {
            let room = self.staging.bytes();
            let problem = format!(
                "inputs of {total} bytes, the staging memory has {room}; open the device with more"
            );
            return Err(Error::Argument { request: REQUEST, problem });
        }
        let mut writes = Vec::with_capacity(inputs.len());
        let mut end = 0;
        for (buffer, offset, bytes) in inputs {
            transfer::check(REQUEST, buffer, *offset, bytes.len())?;
            let staging = self.staging.write(end, bytes);
            end += bytes.len();
            writes.push(InputWrite { buffer: buffer.id, offset: *offset, staging });
        }
        let request = Request::WriteInputs { writes: &writes };
        let InputsWritten { event } = self.link.call(&request, &[], self.deadlines.transfer)?;
        Ok(event)
    }

    /// Replays a trace, after an event; the time that it took. The worker is ended after `limit`
    /// ([`Deadlines::replay`] if there is none).
    pub fn replay(
        &mut self,
        trace: u32,
        after: Option<u64>,
        limit: Option<Duration>,
    ) -> Result<Duration, Error> {
        let limit = limit.unwrap_or(self.deadlines.replay);
        let Ran { nanoseconds } = self.link.call(&Request::Replay { trace, after }, &[], limit)?;
        Ok(Duration::from_nanos(nanoseconds))
    }

    pub fn telemetry(&mut self) -> Result<Telemetry, Error> {
        self.link.call(&Request::Telemetry {}, &[], self.deadlines.telemetry)
    }

    /// Closes the card; how the worker has ended.
    pub fn close(mut self) -> Result<Exit, Error> {
        self.ask_to_close()
    }

    fn ask_to_close(&mut self) -> Result<Exit, Error> {
        let Empty {} = self.link.call(&Request::Close {}, &[], self.deadlines.close)?;
        Ok(self.link.finish(self.deadlines.close))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.link.is_alive() {
            // It is ended either way.
            let _ = self.ask_to_close();
        }
    }
}
