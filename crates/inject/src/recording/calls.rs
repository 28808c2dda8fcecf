//! Calls of the driver as commands.

use std::ffi::c_void;

use tracesmith_cuda::{
    cupti::{
        abi::{ApiCallback, SITE_EXIT},
        parameters::{
            Allocate, AllocatePitch, Copy, EXTRA_END, EXTRA_POINTER, EXTRA_SIZE, Handles, Launch,
            LaunchAttribute, LaunchEx, Range, Set, SetFunctionAttribute, SetKernelAttribute,
        },
    },
    driver::FunctionHandle,
};
use tracesmith_wire::record::{Command, Piece};

use super::{
    Function, PIECE_BYTES, Recording, State,
    functions::{Action, Order, Taking},
    has_loaded, inside,
    memory::Kind,
    take_loaded,
};
use crate::{clock, cuda::kinds::plain_name, guard::lock, threads};

/// Numbers of the format's kinds of commands, and of its moments.
mod code {
    pub(super) const REFUSED: u8 = 0;
    pub(super) const LAUNCH: u8 = 1;
    pub(super) const COPY: u8 = 2;
    pub(super) const SET: u8 = 3;
    pub(super) const ALLOCATE: u8 = 4;
    pub(super) const FREE: u8 = 5;
    pub(super) const RECORD_EVENT: u8 = 6;
    pub(super) const WAIT_EVENT: u8 = 7;
    pub(super) const SYNCHRONIZE: u8 = 8;
    pub(super) const ATTRIBUTE: u8 = 9;
    pub(super) const CALL: u32 = 2;
}

/// The attribute that makes a launch cooperative: `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;

/// The arguments of a call.
macro_rules! given {
    ($call:ident, $type:ty) => {
        // SAFETY: who calls this function vouches for the type.
        unsafe { $call.arguments::<$type>() }
    };
}

/// What a pointer among them points to.
macro_rules! pointed {
    ($pointer:expr) => {
        // SAFETY: null, or what the driver has read or written too.
        unsafe { $pointer.as_ref() }
    };
}

/// What a call is: the arguments, and how it went.
struct Call<'c> {
    callback: &'c ApiCallback,
}

impl Call<'_> {
    /// The call's arguments.
    ///
    /// # Safety
    ///
    /// They begin with a `T`.
    unsafe fn arguments<T: std::marker::Copy>(&self) -> Option<T> {
        // SAFETY: the caller vouches for it; CUPTI's own struct during the callback.
        (!self.callback.parameters.is_null())
            .then(|| unsafe { self.callback.parameters.cast::<T>().read_unaligned() })
    }

    fn has_failed(&self) -> bool {
        // SAFETY: at the end of a call it is what the call gives back.
        unsafe { self.callback.result.cast::<i32>().as_ref() }.is_some_and(|result| *result != 0)
    }

    fn name(&self) -> Vec<u8> {
        if self.callback.function_name.is_null() {
            return Vec::new();
        }
        // SAFETY: CUPTI's text.
        let name = unsafe { std::ffi::CStr::from_ptr(self.callback.function_name) };
        plain_name(name.to_str().unwrap_or_default())
            .as_bytes()
            .to_owned()
    }
}

impl Recording {
    /// A call of the driver that is watched begins or ends.
    pub(crate) fn call(&self, id: u32, callback: &ApiCallback) {
        let mut guard = lock(&self.state);
        let Some(state) = guard.as_mut() else {
            return;
        };
        let Some(action) = state.actions.get(&id).copied() else {
            return;
        };
        state.context = callback.context as usize;
        let call = Call { callback };
        inside(|| {
            if callback.site == SITE_EXIT {
                // SAFETY: the arguments are those of the function that the action is for.
                unsafe { state.ended(action, &call) };
            } else {
                let _ = take_loaded();
                // SAFETY: as above.
                unsafe { state.begins(action, &call) };
            }
        });
    }
}

impl State {
    /// What must be known before the call does its work.
    ///
    /// # Safety
    ///
    /// The call's arguments are those of the action's functions.
    unsafe fn begins(&mut self, action: Action, call: &Call<'_>) {
        match action {
            Action::Launch | Action::LaunchCooperative if self.is_window => {
                if let Some(mut launch) = given!(call, Launch) {
                    let mut attributes = Vec::new();
                    if action == Action::LaunchCooperative {
                        launch.extra = std::ptr::null_mut();
                        attributes.push(cooperative());
                    }
                    // SAFETY: the program's own launch.
                    unsafe { self.launch(call, &launch, &attributes) };
                }
            }
            Action::LaunchEx if self.is_window => {
                let Some(launch) = given!(call, LaunchEx) else {
                    return;
                };
                let Some(config) = pointed!(launch.config) else {
                    return;
                };
                let attributes = if config.attributes.is_null() {
                    &[][..]
                } else {
                    // SAFETY: so many of them, as the program says.
                    unsafe { std::slice::from_raw_parts(config.attributes, config.attribute_count as usize) }
                };
                let launch = Launch {
                    function: launch.function,
                    grid: config.grid,
                    block: config.block,
                    shared: config.shared,
                    stream: config.stream,
                    parameters: launch.parameters,
                    extra: launch.extra,
                };
                // SAFETY: the program's own launch.
                unsafe { self.launch(call, &launch, attributes) };
            }
            Action::Copy(order) if self.is_window => {
                if let Some(copy) = given!(call, Copy) {
                    // SAFETY: the program's own copy.
                    unsafe { self.copy(call, &copy, order) };
                }
            }
            Action::Set(width, order) if self.is_window => {
                if let Some(set) = given!(call, Set) {
                    self.set(call, &set, width, order);
                }
            }
            // While it is still there.
            Action::Free(order) => {
                if let Some(range) = given!(call, Range) {
                    self.free(call, range.address, order, range.second);
                }
            }
            Action::Unmap => {
                if let Some(range) = given!(call, Range) {
                    self.free(call, range.address, Order::Now, 0);
                }
            }
            Action::RecordEvent if self.is_window => {
                if let Some(handles) = given!(call, Handles) {
                    self.simple(call, code::RECORD_EVENT, handles.second, handles.first);
                }
            }
            Action::WaitEvent if self.is_window => {
                if let Some(handles) = given!(call, Handles) {
                    self.simple(call, code::WAIT_EVENT, handles.first, handles.second);
                }
            }
            Action::Synchronize if self.is_window => self.simple(call, code::SYNCHRONIZE, 0, 0),
            Action::Refuse(why) if self.is_window => self.refuse(call, why),
            _ => {}
        }
    }

    /// What is known once the call has done its work.
    ///
    /// # Safety
    ///
    /// As [`State::begins`].
    unsafe fn ended(&mut self, action: Action, call: &Call<'_>) {
        if call.has_failed() {
            return;
        }
        match action {
            Action::Allocate(taking) => {
                // SAFETY: the caller vouches for the arguments.
                unsafe { self.allocated(call, taking) };
            }
            Action::RegisterHost => {
                if let Some(range) = given!(call, Range) {
                    self.took(call, range.address, range.second, Kind::Host);
                }
            }
            Action::Map => {
                if let Some(range) = given!(call, Range) {
                    self.took(call, range.address, range.second, Kind::Device);
                }
            }
            Action::FunctionAttribute => {
                if let Some(set) = given!(call, SetFunctionAttribute) {
                    self.attribute(
                        call,
                        FunctionHandle(set.function as usize),
                        set.attribute,
                        set.value,
                    );
                }
            }
            Action::KernelAttribute => {
                if let Some(set) = given!(call, SetKernelAttribute) {
                    self.attribute(
                        call,
                        FunctionHandle(set.kernel as usize),
                        set.attribute,
                        set.value,
                    );
                }
            }
            Action::LoadModule if has_loaded() => {
                let given = given!(call, *const u64);
                let handle = given.and_then(|given| pointed!(given)).copied();
                self.learn_module(handle);
            }
            Action::FindFunction if has_loaded() => {
                let handles = given!(call, Handles);
                self.learn_module(handles.map(|handles| handles.second));
            }
            Action::LoadKernel if has_loaded() => {
                let given = given!(call, *const usize);
                let function = given.and_then(|given| pointed!(given)).copied();
                let module = function.and_then(|function| self.peek.module(FunctionHandle(function)));
                self.learn_module(module);
            }
            Action::Launch | Action::LaunchCooperative if has_loaded() => {
                let launch = given!(call, Launch);
                let function = launch.map(|launch| FunctionHandle(launch.function as usize));
                self.launched(function);
            }
            Action::LaunchEx if has_loaded() => {
                let launch = given!(call, LaunchEx);
                let function = launch.map(|launch| FunctionHandle(launch.function as usize));
                self.launched(function);
            }
            _ => {}
        }
    }

    fn launched(&mut self, function: Option<FunctionHandle>) {
        let module = function.and_then(|function| self.peek.module(function));
        self.learn_module(module);
    }

    /// # Safety
    ///
    /// The launch's pointers are as the driver wants them.
    unsafe fn launch(&mut self, call: &Call<'_>, launch: &Launch, attributes: &[LaunchAttribute]) {
        if self.is_captured(launch.stream as usize) {
            return;
        }
        let handle = FunctionHandle(launch.function as usize);
        if !self.functions.contains_key(&handle) {
            let Some(function) = self.look_at(handle) else {
                self.refuse(call, "a kernel whose parameters the driver does not tell");
                return;
            };
            self.functions.insert(handle, function);
        }
        let function = &self.functions[&handle];
        // SAFETY: the caller vouches for it.
        let parameters = unsafe { parameters(function, launch) };
        let Some(parameters) = parameters else {
            self.refuse(call, "a kernel whose parameters cannot be read");
            return;
        };
        let (name, module) = (function.name.clone(), function.module);
        for word in words(&parameters) {
            self.reach(word, call.callback.context_id);
        }
        let attributes: Vec<u8> = attributes.iter().flat_map(bytes_of).collect();
        let command = Command {
            kind: code::LAUNCH,
            stream: launch.stream as u64,
            module,
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            ..self.command(call)
        };
        self.tell_command(command, &name, &parameters, &attributes, "");
    }

    fn look_at(&self, handle: FunctionHandle) -> Option<Function> {
        Some(Function {
            name: self.peek.name(handle)?.into(),
            parameters: self.peek.parameters(handle)?,
            module: self.peek.module(handle).unwrap_or(0),
        })
    }

    /// # Safety
    ///
    /// The copy's addresses are as the driver wants them.
    unsafe fn copy(&mut self, call: &Call<'_>, copy: &Copy, order: Order) {
        let stream = stream(order, copy.stream);
        if self.is_captured(stream) {
            return;
        }
        let context = call.callback.context_id;
        self.reach(copy.destination, context);
        let from_device = self.reach(copy.source, context);
        let command = Command {
            kind: code::COPY,
            stream: stream as u64,
            destination: copy.destination,
            source: copy.source,
            bytes: copy.bytes as u64,
            ..self.command(call)
        };
        let number = command.number;
        self.tell_command(command, &[], &[], &[], "");
        let to_device = self.memory.is_reached(copy.destination);
        if from_device || !to_device {
            return;
        }
        for at in (0..copy.bytes).step_by(PIECE_BYTES) {
            let length = PIECE_BYTES.min(copy.bytes - at);
            // SAFETY: memory of the host that the call reads too.
            let bytes =
                unsafe { std::slice::from_raw_parts((copy.source as usize + at) as *const u8, length) };
            let piece = Piece {
                address: copy.destination + at as u64,
                command: number,
                moment: code::CALL,
                reserved: 0,
            };
            self.tell(&piece, &[bytes]);
        }
    }

    fn set(&mut self, call: &Call<'_>, set: &Set, width: u8, order: Order) {
        let stream = stream(order, set.stream);
        if self.is_captured(stream) {
            return;
        }
        self.reach(set.destination, call.callback.context_id);
        let mask = u32::MAX >> (32 - 8 * u32::from(width));
        let command = Command {
            kind: code::SET,
            stream: stream as u64,
            destination: set.destination,
            bytes: set.count as u64 * u64::from(width),
            value: u64::from(set.value & mask),
            width,
            ..self.command(call)
        };
        self.tell_command(command, &[], &[], &[], "");
    }

    /// # Safety
    ///
    /// As [`State::ended`].
    unsafe fn allocated(&mut self, call: &Call<'_>, taking: Taking) {
        let (address, bytes) = if taking == Taking::Pitched {
            let Some(taken) = given!(call, AllocatePitch) else {
                return;
            };
            let pitch = pointed!(taken.pitch).copied().unwrap_or(taken.width);
            (taken.address, pitch * taken.height)
        } else {
            let Some(taken) = given!(call, Allocate) else {
                return;
            };
            (taken.address, taken.bytes)
        };
        let Some(address) = pointed!(address).copied() else {
            return;
        };
        let kind = match taking {
            Taking::Host => Kind::Host,
            Taking::Managed => Kind::Managed,
            _ => Kind::Device,
        };
        self.took(call, address, bytes as u64, kind);
    }

    /// The program has memory that it did not have.
    fn took(&mut self, call: &Call<'_>, address: u64, bytes: u64, kind: Kind) {
        self.memory.took(address, bytes, kind, call.callback.context_id);
        if !self.is_window {
            return;
        }
        self.memory.reach_fresh(address);
        let command = Command {
            kind: code::ALLOCATE,
            destination: address,
            bytes,
            value: u64::from(kind as u8),
            ..self.command(call)
        };
        self.tell_command(command, &[], &[], &[], "");
    }

    fn free(&mut self, call: &Call<'_>, address: u64, order: Order, stream: u64) {
        let known = self.memory.gave_back(address);
        if self.is_window && known {
            let command = Command {
                kind: code::FREE,
                stream: if order == Order::InStream { stream } else { 0 },
                destination: address,
                ..self.command(call)
            };
            self.tell_command(command, &[], &[], &[], "");
        }
    }

    /// An attribute stays, so it is told whenever it is set.
    fn attribute(&mut self, call: &Call<'_>, function: FunctionHandle, attribute: u32, value: i32) {
        let Some(function) = self.look_at(function) else {
            return;
        };
        let command = Command {
            kind: code::ATTRIBUTE,
            module: function.module,
            object: u64::from(attribute),
            value: u64::from(value as u32),
            ..self.command(call)
        };
        self.tell_command(command, &function.name, &[], &[], "");
    }

    fn simple(&mut self, call: &Call<'_>, kind: u8, stream: u64, object: u64) {
        if kind != code::SYNCHRONIZE && self.is_captured(stream as usize) {
            return;
        }
        let command = Command {
            kind,
            stream,
            object,
            ..self.command(call)
        };
        self.tell_command(command, &[], &[], &[], "");
    }

    /// Whether the call becomes part of a graph and does nothing by itself; then
    /// nothing may be read either.
    fn is_captured(&mut self, stream: usize) -> bool {
        self.peek.is_capturing(stream)
    }

    /// A call that cannot be run again.
    fn refuse(&mut self, call: &Call<'_>, why: &str) {
        let command = Command {
            kind: code::REFUSED,
            ..self.command(call)
        };
        self.tell_command(command, &call.name(), &[], &[], why);
    }

    /// What all commands have.
    fn command(&self, call: &Call<'_>) -> Command {
        Command {
            number: self.commands + 1,
            time: clock::now(),
            context: call.callback.context_id,
            correlation: call.callback.correlation,
            thread: threads::thread_id(),
            ..Command::default()
        }
    }

    fn tell_command(
        &mut self,
        mut command: Command,
        name: &[u8],
        parameters: &[u8],
        attributes: &[u8],
        why: &str,
    ) {
        self.commands = command.number;
        command.name_bytes = name.len() as u32;
        command.parameter_bytes = parameters.len() as u32;
        command.attribute_bytes = attributes.len() as u32;
        self.tell(&command, &[name, parameters, attributes, why.as_bytes()]);
    }
}

fn stream(order: Order, given: *mut c_void) -> usize {
    match order {
        Order::Now => 0,
        Order::InStream => given as usize,
    }
}

fn cooperative() -> LaunchAttribute {
    let mut value = [0; 64];
    value[0] = 1;
    LaunchAttribute {
        id: COOPERATIVE,
        padding: 0,
        value,
    }
}

fn bytes_of(attribute: &LaunchAttribute) -> Vec<u8> {
    let mut bytes = u64::from(attribute.id).to_le_bytes().to_vec();
    bytes.extend_from_slice(&attribute.value);
    bytes
}

/// The aligned words of some bytes: any of them may be an address.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
}

/// The kernel's parameters as they lie in its parameter space.
///
/// # Safety
///
/// The launch's pointers are as the driver wants them.
unsafe fn parameters(function: &Function, launch: &Launch) -> Option<Vec<u8>> {
    if !launch.parameters.is_null() {
        let end = function
            .parameters
            .iter()
            .map(|each| each.offset + each.bytes)
            .max();
        let mut bytes = vec![0; end.unwrap_or(0)];
        for (index, each) in function.parameters.iter().enumerate() {
            // SAFETY: one pointer for each parameter.
            let value = unsafe { launch.parameters.wrapping_add(index).read() };
            if value.is_null() {
                return None;
            }
            // SAFETY: it points to so many bytes.
            let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), each.bytes) };
            bytes[each.offset..each.offset + each.bytes].copy_from_slice(value);
        }
        return Some(bytes);
    }
    if launch.extra.is_null() {
        return function.parameters.is_empty().then(Vec::new);
    }
    let (mut pointer, mut size, mut at) = (std::ptr::null::<u8>(), 0, 0);
    loop {
        // SAFETY: a list of pairs that ends with a zero.
        let word = unsafe { launch.extra.wrapping_add(at).read() } as usize;
        if word == EXTRA_END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { launch.extra.wrapping_add(at + 1).read() };
        match word {
            EXTRA_POINTER => pointer = value.cast(),
            // SAFETY: it points to a size.
            EXTRA_SIZE => size = unsafe { value.cast::<usize>().read() },
            _ => return None,
        }
        at += 2;
    }
    // SAFETY: the program says that so many bytes lie there.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer, size) }.to_vec())
}
