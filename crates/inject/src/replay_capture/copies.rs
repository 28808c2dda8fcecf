//! Copies and sets, of bytes, rows and planes.

use std::ffi::c_void;

use tracesmith_cuda::cupti::parameters::{Copy, Planes, Set, SetNode, SetRows, Side};
use tracesmith_wire::record::Command;

use super::{
    PIECE_BYTES, State,
    calls::{Call, code},
    functions::{Order, Wait},
    memory::Reached,
    textures::{ARRAY, End},
};

/// What is set, where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) destination: u64,
    /// Bytes from row to row.
    pub(super) pitch: u64,
    pub(super) value: u32,
    /// Bytes of an element.
    pub(super) element: u8,
    /// Elements of a row.
    pub(super) width: u64,
    /// Rows.
    pub(super) height: u64,
}

impl Setting {
    pub(super) fn of(set: &Set, element: u8) -> Self {
        Self {
            destination: set.destination,
            pitch: 0,
            value: set.value,
            element,
            width: set.count as u64,
            height: 1,
        }
    }

    pub(super) fn of_rows(set: &SetRows, element: u8) -> Self {
        Self {
            destination: set.destination,
            pitch: set.pitch as u64,
            value: set.value,
            element,
            width: set.width as u64,
            height: set.height as u64,
        }
    }

    pub(super) fn of_node(set: &SetNode) -> Self {
        Self {
            destination: set.destination,
            pitch: set.pitch as u64,
            value: set.value,
            element: set.element as u8,
            width: set.width as u64,
            height: set.height as u64,
        }
    }
}

impl State {
    /// # Safety
    ///
    /// The copy's addresses are as the driver wants them.
    pub(super) unsafe fn copy(&mut self, call: &Call<'_>, copy: &Copy, order: Order) {
        let stream = handle_in(order, copy.stream);
        if self.is_captured(stream) {
            return;
        }
        let command = Command {
            kind: code::COPY,
            stream: self.stream(call, stream),
            destination: copy.destination,
            source: copy.source,
            bytes: copy.bytes as u64,
            ..self.command(call)
        };
        let context = command.context;
        // SAFETY: the caller vouches for it.
        unsafe { self.send_copy(command) };
        let ends = [copy.destination, copy.source].map(|end| self.mark_reachable(end, context));
        self.wait_after(call, order, ends);
    }

    /// A copy with the host that takes no stream is done when the call returns.
    fn wait_after(&mut self, call: &Call<'_>, order: Order, ends: [Reached; 2]) {
        if order == Order::Now && ends != [Reached::Device; 2] {
            self.host_waits(call, Wait::Stream, 0);
        }
    }

    /// Tells a copy of bytes, with those of the host.
    ///
    /// # Safety
    ///
    /// Its addresses are as the driver wants them.
    pub(super) unsafe fn send_copy(&mut self, command: Command) {
        let (bytes, source, destination) = (command.bytes as usize, command.source, command.destination);
        let to = self.mark_reachable(destination, command.context);
        let from = self.mark_reachable(source, command.context);
        let (number, context) = (command.number, command.context);
        let is_brought = from != Reached::Device && to != Reached::Nothing;
        let mut brought: &[u8] = &[];
        if is_brought {
            self.await_host();
            // SAFETY: memory of the host that the call reads too.
            brought = unsafe { std::slice::from_raw_parts(source as *const u8, bytes) };
            self.reach_brought(brought, context);
        }
        self.send_command(command, &[], &[], &[], "");
        if matches!(to, Reached::Host(_)) {
            self.memory.host_is_written();
        }
        if is_brought {
            self.send_bytes(brought, destination, number);
        }
    }

    /// # Safety
    ///
    /// The copy's addresses are as the driver wants them.
    pub(super) unsafe fn copy_planes(
        &mut self,
        call: &Call<'_>,
        planes: &Planes,
        order: Order,
        stream: *mut c_void,
    ) {
        let stream = handle_in(order, stream);
        if self.is_captured(stream) {
            return;
        }
        // What must be told of arrays stands before the copy.
        let ends = [&planes.source, &planes.destination].map(|side| self.end_of(side, &self.command(call)));
        let [Some(source), Some(destination)] = ends else {
            self.refuse(call, ARRAY);
            return;
        };
        let command = Command {
            kind: code::COPY_PLANES,
            stream: self.stream(call, stream),
            ..self.command(call)
        };
        // SAFETY: the caller vouches for it.
        unsafe { self.send_planes(command, planes) };
        self.wait_after(call, order, [source.reached, destination.reached]);
    }

    /// Tells a copy of planes, with the bytes of the host; none when it is about
    /// an array that is not known.
    ///
    /// # Safety
    ///
    /// Its addresses are as the driver wants them.
    pub(super) unsafe fn send_planes(&mut self, mut command: Command, planes: &Planes) -> Option<()> {
        let from = self.end_of(&planes.source, &command)?;
        let to = self.end_of(&planes.destination, &command)?;
        let (number, context) = (command.number, command.context);
        command.destination = to.address;
        command.source = from.address;
        command.bytes = (planes.width * planes.height * planes.depth) as u64;
        let mut brought = None;
        if from.reached != Reached::Device && to.reached != Reached::Nothing {
            self.await_host();
            // SAFETY: the caller vouches for it.
            let bytes = unsafe { gather(&planes.source, planes, from.address) };
            self.reach_brought(&bytes, context);
            brought = Some(bytes);
        }
        self.send_command(command, &[], &words(&from, &to, planes), &[], "");
        if matches!(to.reached, Reached::Host(_)) {
            self.memory.host_is_written();
        }
        if let Some(bytes) = brought {
            for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                // They have no place of their own: row upon row, from the first on.
                self.send_bytes(piece, (index * PIECE_BYTES) as u64, number);
            }
        }
        Some(())
    }

    pub(super) fn set(&mut self, call: &Call<'_>, set: &Setting, order: Order, stream: *mut c_void) {
        let stream = handle_in(order, stream);
        if self.is_captured(stream) {
            return;
        }
        let command = Command {
            kind: code::SET,
            stream: self.stream(call, stream),
            ..self.command(call)
        };
        self.send_set(command, set);
    }

    pub(super) fn send_set(&mut self, command: Command, set: &Setting) {
        let reached = self.mark_reachable(set.destination, command.context);
        if matches!(reached, Reached::Host(_)) {
            self.memory.host_is_written();
        }
        let mask = u32::MAX >> (32 - 8 * u32::from(set.element.clamp(1, 4)));
        let command = Command {
            destination: set.destination,
            bytes: set.width * u64::from(set.element),
            value: u64::from(set.value & mask),
            width: set.element,
            // Of several rows: from row to row, and how many.
            source: if set.height > 1 { set.pitch } else { 0 },
            object: if set.height > 1 { set.height } else { 0 },
            ..command
        };
        self.send_command(command, &[], &[], &[], "");
    }
}

/// The rows of one end of a copy, one upon the other.
///
/// # Safety
///
/// It is memory of the host that the copy may read.
unsafe fn gather(side: &Side, planes: &Planes, first: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(planes.width * planes.height * planes.depth);
    for plane in 0..planes.depth {
        for row in 0..planes.height {
            let offset = (plane * side.height + row) * side.pitch;
            let row = (first as usize + offset) as *const u8;
            // SAFETY: the caller vouches for it.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(row, planes.width) });
        }
    }
    bytes
}

/// A copy of planes as the format has it: where each end begins, its pitch and
/// rows of a plane; then width, height and depth.
fn words(source: &End, destination: &End, planes: &Planes) -> Vec<u8> {
    let side = |end: &End| [end.address, end.pitch, end.height];
    let sizes = [planes.width, planes.height, planes.depth].map(|size| size as u64);
    [side(source), side(destination), sizes]
        .into_iter()
        .flatten()
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// The stream's handle; work that is waited for takes none.
pub(super) fn handle_in(order: Order, given: *mut c_void) -> usize {
    match order {
        Order::Now => 0,
        Order::InStream => given as usize,
    }
}
