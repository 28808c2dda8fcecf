//! Issues single calls of a recording: launches, memcpys, memsets, events and waits.

use std::rc::Rc;

use tracesmith_cuda::driver::Setting;
use tracesmith_format::tables::{CommandKind, MemoryKind};

use crate::cuda;
use crate::error::Error;
use crate::recording::Command;
use crate::run::{Fresh, Order, Replay};

/// The kinds of host waits, as encoded in the format.
const WAIT_FOR_STREAM: u64 = 1;
const WAIT_FOR_EVENT: u64 = 2;

impl Replay<'_> {
    /// Issues one call.
    pub(crate) fn issue(&mut self, command: &Command) -> Result<(), Error> {
        match command.kind {
            CommandKind::LAUNCH => self.launch(command),
            CommandKind::COPY => self.copy(command),
            CommandKind::COPY_PLANES => self.copy_planes(command),
            CommandKind::SET => {
                let width = command.width.max(1);
                let set = Setting {
                    address: self.place(command.destination),
                    value: command.value as u32,
                    width,
                    count: command.bytes / u64::from(width),
                    rows: command.object,
                    pitch: command.source,
                };
                self.stage
                    .set(&set, self.stream(command))
                    .map_err(Error::device("setting memory"))
            }
            CommandKind::HOST_FUNCTION => {
                self.wait_for(command.stream)?;
                self.bring(command)
            }
            CommandKind::ALLOCATE => self.allocate(command),
            CommandKind::RECORD_EVENT => self.record_event(command),
            CommandKind::WAIT_EVENT => self.wait_event(command),
            CommandKind::SYNCHRONIZE => self.host_waits(command),
            CommandKind::TEXTURE => self.redefine_texture(command),
            // Memory is mapped from start to end, and attributes are set when a kernel is loaded.
            _ => Ok(()),
        }
    }

    /// Fills newly allocated memory with the pattern, if requested. Host memory keeps the contents that it had before
    /// the program pinned it.
    fn allocate(&self, command: &Command) -> Result<(), Error> {
        let address = self.place(command.destination);
        let is_device = !matches!(
            MemoryKind(command.value as u8),
            MemoryKind::PINNED | MemoryKind::PAGEABLE
        );
        if self.fresh == Fresh::Once || !is_device || !self.stage.holds(address, command.bytes) {
            return Ok(());
        }
        self.wait()?;
        let set = Setting {
            address,
            value: u32::from(self.pattern),
            width: 1,
            count: command.bytes,
            rows: 1,
            pitch: 0,
        };
        self.stage
            .set(&set, None)
            .map_err(Error::device("filling memory"))?;
        self.wait()
    }

    fn launch(&mut self, command: &Command) -> Result<(), Error> {
        if self.recording.brought.contains_key(&command.number) {
            // The program had changed host memory that the kernel uses.
            self.wait()?;
            self.bring(command)?;
        }
        let key = (command.module, command.function.clone());
        let replaced = self.replaced.get(&command.number).map(Rc::as_ref);
        let function = replaced
            .or_else(|| self.functions.get(&key))
            .ok_or_else(|| Error::Missing(format!("the module of {}", command.function)))?;
        let parameters = self.parameters(command);
        cuda::launch(function, command, &parameters, self.stream(command)).map_err(Error::device("launching"))
    }

    /// The parameters of a launch, with addresses of relocated memory.
    pub(crate) fn parameters(&self, command: &Command) -> Vec<u8> {
        let mut parameters = command.parameters.clone();
        if !self.moved.is_empty() || !self.stage.shifted().is_empty() {
            for bytes in parameters.as_chunks_mut::<8>().0 {
                *bytes = self.place(u64::from_le_bytes(*bytes)).to_le_bytes();
            }
        }
        parameters
    }

    /// Waits on the host for the work that the program waited for.
    fn host_waits(&self, command: &Command) -> Result<(), Error> {
        match (command.value, self.events.get(&command.object)) {
            (WAIT_FOR_STREAM, _) => self.wait_for(command.stream),
            (WAIT_FOR_EVENT, Some(event)) => event.synchronize().map_err(Error::device("waiting")),
            // An event that was recorded before the window has completed.
            (WAIT_FOR_EVENT, None) => Ok(()),
            _ => self.context.synchronize().map_err(Error::device("waiting")),
        }
    }

    pub(crate) fn wait_for(&self, stream: u64) -> Result<(), Error> {
        let wait = || match self.streams.get(&stream).filter(|_| self.order == Order::Streams) {
            Some(stream) => stream.synchronize(),
            None => {
                let here = self.context.event()?;
                here.record_everywhere()?;
                here.synchronize()
            }
        };
        wait().map_err(Error::device("synchronizing the stream"))
    }

    fn record_event(&mut self, command: &Command) -> Result<(), Error> {
        let failed = || Error::device("recording an event");
        let event = match self.events.remove(&command.object) {
            Some(event) => event,
            None => self.context.event().map_err(failed())?,
        };
        let stream = self.stream(command).unwrap_or(&self.marks);
        event.record(stream).map_err(failed())?;
        self.events.insert(command.object, event);
        Ok(())
    }

    /// An event that was recorded before the window has completed.
    fn wait_event(&self, command: &Command) -> Result<(), Error> {
        let stream = self.stream(command).unwrap_or(&self.marks);
        match self.events.get(&command.object) {
            Some(event) => stream.wait(event).map_err(Error::device("waiting for an event")),
            None => Ok(()),
        }
    }
}
