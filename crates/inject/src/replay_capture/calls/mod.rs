//! Calls of the driver as commands.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tracesmith_cuda::{
    cupti::{
        abi::{ApiCallback, SITE_EXIT},
        parameters::{
            Allocate, AllocatePitch, Copy, CopyOf, GetVariable, Handles, Instantiate, KernelNode, Launch,
            LaunchAttribute, LaunchEx, MakeTexture, Planes, Range, Rows, Set, SetFunctionAttribute,
            SetKernelAttribute, SetNode, SetNodeParameters, SetRows,
        },
    },
    driver::FunctionHandle,
};
use tracesmith_wire::record::Command;

use crate::replay_capture::{
    Function, ReplayCapture, State,
    arguments::{bytes_of, cooperative, events, objection, parameters, words},
    copies::Setting,
    foreign::is_collective,
    functions::{Action, Order, Taking, Wait},
    inside,
    memory::{Kind, Neighbours, Reached},
    modules::{self, Evidence, Module, has_seen_any},
};
use crate::{clock, cuda::kinds::plain_name, guard::lock, threads};

/// Numbers of the format's kinds of commands.
pub(in crate::replay_capture) mod code {
    pub(in crate::replay_capture) const REFUSED: u8 = 0;
    pub(in crate::replay_capture) const LAUNCH: u8 = 1;
    pub(in crate::replay_capture) const COPY: u8 = 2;
    pub(in crate::replay_capture) const SET: u8 = 3;
    pub(in crate::replay_capture) const ALLOCATE: u8 = 4;
    pub(in crate::replay_capture) const FREE: u8 = 5;
    pub(in crate::replay_capture) const RECORD_EVENT: u8 = 6;
    pub(in crate::replay_capture) const WAIT_EVENT: u8 = 7;
    pub(in crate::replay_capture) const SYNCHRONIZE: u8 = 8;
    pub(in crate::replay_capture) const ATTRIBUTE: u8 = 9;
    pub(in crate::replay_capture) const STREAM: u8 = 10;
    pub(in crate::replay_capture) const HOST_FUNCTION: u8 = 11;
    pub(in crate::replay_capture) const GRAPH: u8 = 12;
    pub(in crate::replay_capture) const COPY_PLANES: u8 = 13;
    pub(in crate::replay_capture) const TEXTURE: u8 = 14;
    pub(in crate::replay_capture) const ARRAY: u8 = 15;
}

/// The default stream of a thread, as a handle.
const PER_THREAD: u64 = 2;

/// How long a function of the host may take: it may itself wait for the thread that we hold up.
pub(in crate::replay_capture) const HOST_LIMIT: Duration = Duration::from_secs(5);

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
pub(in crate::replay_capture) struct Call<'c> {
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

    fn full_name(&self) -> &str {
        if self.callback.function_name.is_null() {
            return "";
        }
        // SAFETY: CUPTI's text.
        let name = unsafe { std::ffi::CStr::from_ptr(self.callback.function_name) };
        name.to_str().unwrap_or_default()
    }

    fn name(&self) -> Vec<u8> {
        plain_name(self.full_name()).as_bytes().to_owned()
    }

    /// Whether the default stream is, to this call, the thread's own.
    fn uses_per_thread_default_stream(&self) -> bool {
        let name = self.full_name();
        name.ends_with("_ptsz") || name.ends_with("_ptds")
    }
}

impl ReplayCapture {
    /// A call of the driver that is watched begins or ends.
    pub(crate) fn call(&self, id: u32, callback: &ApiCallback) {
        let mut guard = lock(&self.state);
        while guard.as_ref().is_some_and(|state| state.stalled.is_others()) {
            drop(guard);
            std::thread::sleep(Duration::from_micros(50));
            guard = lock(&self.state);
        }
        let Some(state) = guard.as_mut() else {
            return;
        };
        let Some(action) = state.actions.get(&id).copied() else {
            return;
        };
        state.context = callback.context as usize;
        let call = Call { callback };
        inside(|| {
            state.take_reports();
            state.send_begin();
            if callback.site == SITE_EXIT {
                // SAFETY: the arguments are those of the function that the action is for.
                unsafe { state.ended(action, &call) };
            } else {
                modules::forget_calls_before();
                // SAFETY: as above.
                unsafe { state.begins(action, &call) };
            }
            state.take_reports();
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
            Action::CopyRows(order) if self.is_window => {
                if let Some(copy) = given!(call, CopyOf<Rows>)
                    && let Some(rows) = pointed!(copy.what)
                {
                    // SAFETY: the program's own copy.
                    unsafe { self.copy_planes(call, &Planes::from(*rows), order, copy.stream) };
                }
            }
            Action::CopyPlanes(order) if self.is_window => {
                if let Some(copy) = given!(call, CopyOf<Planes>)
                    && let Some(planes) = pointed!(copy.what)
                {
                    // SAFETY: the program's own copy.
                    unsafe { self.copy_planes(call, planes, order, copy.stream) };
                }
            }
            Action::Set(width, order) if self.is_window => {
                if let Some(set) = given!(call, Set) {
                    self.set(call, &Setting::of(&set, width), order, set.stream);
                }
            }
            Action::SetRows(width, order) if self.is_window => {
                if let Some(set) = given!(call, SetRows) {
                    self.set(call, &Setting::of_rows(&set, width), order, set.stream);
                }
            }
            Action::LaunchGraph if self.is_window => {
                if let Some(handles) = given!(call, Handles) {
                    self.launch_graph(call, handles.first, handles.second as usize);
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
            Action::DropTexture => {
                if let Some(handle) = given!(call, u64) {
                    self.memory.textures.dropped(handle);
                }
            }
            Action::DropArray => {
                if let Some(handle) = given!(call, u64) {
                    self.memory.textures.array_dropped(handle);
                }
            }
            Action::CloseForeign => {
                if let Some(address) = given!(call, u64) {
                    self.memory.foreign.ranges.remove(&address);
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
            Action::Synchronize(what) if self.is_window => {
                let handle = match what {
                    Wait::All => 0,
                    Wait::Stream | Wait::Event => given!(call, u64).unwrap_or(0),
                };
                self.host_waits(call, what, handle);
            }
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
        self.resume();
        if call.has_failed() {
            self.stub = None;
            return;
        }
        if self.stub.is_some() {
            self.collective_launched(call);
        }
        match action {
            Action::Allocate(taking) => {
                // SAFETY: the caller vouches for the arguments.
                unsafe { self.allocated(call, taking) };
            }
            Action::RegisterHost => {
                if let Some(range) = given!(call, Range) {
                    self.took(call, range.address, range.second, Kind::Host, Neighbours::Apart);
                }
            }
            Action::Map => {
                if let Some(range) = given!(call, Range) {
                    self.took(
                        call,
                        range.address,
                        range.second,
                        Kind::Device,
                        Neighbours::Joined,
                    );
                }
            }
            Action::HostFunction if self.is_window => {
                if let Some(handles) = given!(call, Handles) {
                    self.host_function(call, handles.first as usize);
                }
            }
            Action::FindVariable => {
                if let Some(asked) = given!(call, GetVariable)
                    && let (Some(address), Some(bytes)) = (pointed!(asked.address), pointed!(asked.bytes))
                    && !asked.name.is_null()
                {
                    // SAFETY: the name that the driver has read too.
                    let name = unsafe { std::ffi::CStr::from_ptr(asked.name) };
                    let handle = if call.full_name().starts_with("cuModule") {
                        asked.module
                    } else {
                        // A library's: its module in this context, if the call has loaded it.
                        let module = self.driver.module_of_library(asked.module);
                        self.learn_module(module, Evidence::Seen);
                        module.unwrap_or(0)
                    };
                    let module = Module {
                        handle,
                        id: self.modules.id(handle),
                    };
                    let context = call.callback.context_id;
                    let variables = &mut self.memory.variables;
                    variables.found(*address, *bytes as u64, name, module, context);
                }
            }
            Action::MakeTexture(kind) => {
                if let Some(made) = given!(call, MakeTexture) {
                    // SAFETY: what the driver has read too.
                    unsafe { self.made_texture(call, &made, kind) };
                }
            }
            Action::OpenForeign => {
                let given = given!(call, *const u64);
                if let Some(address) = given.and_then(|given| pointed!(given)) {
                    let bytes = self.driver.extent(*address).map_or(1, |extent| {
                        (extent.address + extent.bytes).saturating_sub(*address)
                    });
                    self.memory.foreign.ranges.insert(*address, bytes);
                }
            }
            Action::Instantiate => {
                if let Some(made) = given!(call, Instantiate)
                    && let Some(executable) = pointed!(made.executable)
                {
                    self.learn_graph(*executable, made.graph);
                }
            }
            Action::UpdateGraph => {
                if let Some(handles) = given!(call, Handles) {
                    self.learn_graph(handles.first, handles.second);
                }
            }
            Action::SetKernelNode => {
                if let Some(set) = given!(call, SetNodeParameters)
                    && let Some(kernel) = pointed!(set.parameters.cast::<KernelNode>())
                {
                    // SAFETY: what the driver has read too.
                    unsafe { self.set_kernel_node(set.executable, set.node, kernel) };
                }
            }
            Action::SetCopyNode => {
                if let Some(set) = given!(call, SetNodeParameters)
                    && let Some(planes) = pointed!(set.parameters.cast::<Planes>())
                {
                    self.set_copy_node(set.executable, set.node, planes);
                }
            }
            Action::SetSetNode => {
                if let Some(set) = given!(call, SetNodeParameters)
                    && let Some(node) = pointed!(set.parameters.cast::<SetNode>())
                {
                    self.set_set_node(set.executable, set.node, node);
                }
            }
            Action::ChangeGraph => {
                if let Some(handles) = given!(call, Handles) {
                    self.graph_changed(handles.first);
                }
            }
            Action::DestroyGraph => {
                if let Some(handles) = given!(call, Handles) {
                    self.forget_graph(handles.first);
                }
            }
            Action::FunctionAttribute => {
                if let Some(set) = given!(call, SetFunctionAttribute) {
                    let function = FunctionHandle(set.function as usize);
                    self.learn_module_if_seen(Some(function));
                    self.attribute(call, function, set.attribute, set.value);
                }
            }
            Action::KernelAttribute => {
                if let Some(set) = given!(call, SetKernelAttribute) {
                    let function = FunctionHandle(set.kernel as usize);
                    self.learn_module_if_seen(Some(function));
                    self.attribute(call, function, set.attribute, set.value);
                }
            }
            _ if has_seen_any() => {
                // SAFETY: the caller vouches for the arguments.
                unsafe { self.loaded_in(action, call) };
            }
            _ => {}
        }
    }

    /// A call has loaded a module, or used it for the first time: says which one by what the call returns or takes.
    ///
    /// # Safety
    ///
    /// As [`State::begins`].
    unsafe fn loaded_in(&mut self, action: Action, call: &Call<'_>) {
        match action {
            Action::LoadModule => {
                let given = given!(call, *const u64);
                let handle = given.and_then(|given| pointed!(given)).copied();
                self.learn_module(handle, Evidence::Returned);
            }
            Action::LoadLibrary => {
                let given = given!(call, *const u64);
                let library = given.and_then(|given| pointed!(given)).copied();
                let module = library.and_then(|library| self.driver.module_of_library(library));
                self.learn_module(module, Evidence::Seen);
            }
            Action::FindFunction => {
                let handles = given!(call, Handles);
                self.learn_module(handles.map(|handles| handles.second), Evidence::Seen);
            }
            Action::LoadKernel => {
                let given = given!(call, *const usize);
                let function = given.and_then(|given| pointed!(given)).copied();
                self.learn_module_of(function.map(FunctionHandle));
            }
            Action::AskFunction(place) => {
                let function = match place {
                    0 => given!(call, [usize; 1]).map(|words| words[0]),
                    1 => given!(call, [usize; 2]).map(|words| words[1]),
                    _ => given!(call, [usize; 3]).map(|words| words[2]),
                };
                self.learn_module_of(function.map(FunctionHandle));
            }
            Action::Launch | Action::LaunchCooperative => {
                let launch = given!(call, Launch);
                self.learn_module_of(launch.map(|launch| FunctionHandle(launch.function as usize)));
            }
            Action::LaunchEx => {
                let launch = given!(call, LaunchEx);
                self.learn_module_of(launch.map(|launch| FunctionHandle(launch.function as usize)));
            }
            _ => {}
        }
    }

    fn learn_module_if_seen(&mut self, function: Option<FunctionHandle>) {
        if has_seen_any() {
            self.learn_module_of(function);
        }
    }

    /// # Safety
    ///
    /// The launch's pointers are as the driver wants them.
    unsafe fn launch(&mut self, call: &Call<'_>, launch: &Launch, attributes: &[LaunchAttribute]) {
        if self.is_captured(launch.stream as usize) {
            return;
        }
        let handle = FunctionHandle(launch.function as usize);
        let Some(function) = self.known(handle, call.callback.context_id) else {
            self.refuse(call, "a kernel whose parameters the driver does not tell");
            return;
        };
        // SAFETY: the caller vouches for it.
        let parameters = unsafe { parameters(&function.parameters, launch) };
        let Some(parameters) = parameters else {
            self.refuse(call, "a kernel whose parameters cannot be read");
            return;
        };
        let foreign = self.memory.foreign.objection(&parameters);
        let objection = foreign
            .or_else(|| self.unknown_texture(&parameters))
            .or_else(|| objection(attributes));
        if let Some(why) = objection {
            self.refuse_launch(call, &function, why);
            return;
        }
        if is_collective(&function.name) {
            for word in words(&parameters) {
                self.mark_reachable(word, call.callback.context_id);
            }
            self.collective(call, &function, launch.stream as usize);
            return;
        }
        self.reach_textures(&self.command(call));
        let command = Command {
            stream: self.stream(call, launch.stream as usize),
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            ..self.command(call)
        };
        self.send_launch(command, &function, &parameters, attributes);
        // A replay records them when the kernel has ended, which is as good for those that wait.
        for event in events(attributes) {
            self.simple(call, code::RECORD_EVENT, launch.stream as u64, event);
        }
        if self.memory.variables.is_awaited() {
            self.stall(handle, launch.stream as usize);
        }
    }

    /// What is known of a kernel; the driver is asked once.
    pub(in crate::replay_capture) fn known(
        &mut self,
        handle: FunctionHandle,
        context: u32,
    ) -> Option<Arc<Function>> {
        let key = (context, handle);
        if let Some(function) = self.functions.get(&key) {
            return Some(function.clone());
        }
        let function = Arc::new(self.query_function(handle, context)?);
        self.functions.insert(key, function.clone());
        Some(function)
    }

    /// Tells a launch, with what must be known of the memory that it reaches.
    pub(in crate::replay_capture) fn send_launch(
        &mut self,
        command: Command,
        function: &Function,
        parameters: &[u8],
        attributes: &[LaunchAttribute],
    ) {
        self.reach_variables(function.module, &function.name, command.context);
        let mut host = self.pointed_to();
        for word in words(parameters) {
            if let Reached::Host(base) = self.mark_reachable(word, command.context)
                && !host.contains(&base)
            {
                host.push(base);
            }
        }
        let attributes: Vec<u8> = attributes.iter().flat_map(bytes_of).collect();
        let command = Command {
            kind: code::LAUNCH,
            module: function.module.id,
            ..command
        };
        let number = command.number;
        self.send_command(command, &function.name, parameters, &attributes, "");
        self.send_changes(&host, number);
        if !host.is_empty() {
            self.memory.host_is_written();
        }
    }

    /// A function of the host has its turn in a stream. What it changes in memory
    /// of the host belongs to the capture, so it must have run.
    fn host_function(&mut self, call: &Call<'_>, stream: usize) {
        if self.is_captured(stream) {
            return;
        }
        let command = Command {
            kind: code::HOST_FUNCTION,
            stream: self.stream(call, stream),
            ..self.command(call)
        };
        let number = command.number;
        self.send_command(command, &[], &[], &[], "");
        let began = Instant::now();
        while !self.driver.is_done(stream) {
            if began.elapsed() > HOST_LIMIT {
                self.mark_incomplete("a function of the host did not end within 5 s");
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        let host = self.reached_host();
        self.send_changes(&host, number);
    }

    /// The stream of a command. How it was made is told before it is used first.
    pub(in crate::replay_capture) fn stream(&mut self, call: &Call<'_>, handle: usize) -> u64 {
        let own = handle as u64 == PER_THREAD || (handle == 0 && call.uses_per_thread_default_stream());
        let stream = if own {
            PER_THREAD | u64::from(threads::thread_id()) << 32
        } else {
            handle as u64
        };
        if stream > PER_THREAD && self.streams.insert(stream) {
            let make = self.driver.stream(handle);
            let command = Command {
                kind: code::STREAM,
                stream,
                value: u64::from(make.flags),
                object: u64::from(make.priority as u32),
                ..self.command(call)
            };
            self.send_command(command, &[], &[], &[], "");
        }
        stream
    }

    pub(in crate::replay_capture) fn query_function(
        &mut self,
        handle: FunctionHandle,
        context: u32,
    ) -> Option<Function> {
        Some(Function {
            name: self.driver.name(handle)?.into(),
            parameters: self.driver.parameters(handle)?,
            module: self.module_of(handle, context),
        })
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
        self.took(call, address, bytes as u64, kind, Neighbours::Apart);
    }

    /// The program has memory that it did not have.
    fn took(&mut self, call: &Call<'_>, address: u64, bytes: u64, kind: Kind, neighbours: Neighbours) {
        self.memory
            .took(address, bytes, kind, call.callback.context_id, neighbours);
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
        self.send_command(command, &[], &[], &[], "");
    }

    fn free(&mut self, call: &Call<'_>, address: u64, order: Order, stream: u64) {
        let known = self.memory.on_free(address);
        if self.is_window && known {
            let stream = match order {
                Order::InStream => self.stream(call, stream as usize),
                Order::Now => 0,
            };
            let command = Command {
                kind: code::FREE,
                stream,
                destination: address,
                ..self.command(call)
            };
            self.send_command(command, &[], &[], &[], "");
            if order == Order::Now {
                // Memory does not go before all work on it is done.
                self.host_waits(call, Wait::All, 0);
            }
        }
    }

    /// An attribute stays, so it is told whenever it is set.
    fn attribute(&mut self, call: &Call<'_>, function: FunctionHandle, attribute: u32, value: i32) {
        let Some(function) = self.query_function(function, call.callback.context_id) else {
            return;
        };
        let command = Command {
            kind: code::ATTRIBUTE,
            module: function.module.id,
            object: u64::from(attribute),
            value: u64::from(value as u32),
            ..self.command(call)
        };
        self.send_command(command, &function.name, &[], &[], "");
    }

    /// The program goes on only when some work is done, and may rely on that.
    pub(in crate::replay_capture) fn host_waits(&mut self, call: &Call<'_>, what: Wait, handle: u64) {
        let (stream, object) = match what {
            Wait::All => (0, 0),
            Wait::Stream => (self.stream(call, handle as usize), 0),
            Wait::Event => (0, handle),
        };
        let command = Command {
            kind: code::SYNCHRONIZE,
            stream,
            object,
            value: what as u64,
            ..self.command(call)
        };
        self.send_command(command, &[], &[], &[], "");
    }

    fn simple(&mut self, call: &Call<'_>, kind: u8, stream: u64, object: u64) {
        if self.is_captured(stream as usize) {
            return;
        }
        let command = Command {
            kind,
            stream: self.stream(call, stream as usize),
            object,
            ..self.command(call)
        };
        self.send_command(command, &[], &[], &[], "");
    }

    /// Whether the call becomes part of a graph and does nothing by itself; then
    /// nothing may be read either.
    pub(in crate::replay_capture) fn is_captured(&mut self, stream: usize) -> bool {
        self.driver.is_capturing(stream)
    }

    /// A call that cannot be run again.
    pub(in crate::replay_capture) fn refuse(&mut self, call: &Call<'_>, why: &str) {
        let command = self.command(call);
        self.refuse_in(command, call, why);
    }

    /// The same, of what a graph does.
    pub(in crate::replay_capture) fn refuse_in(&mut self, command: Command, call: &Call<'_>, why: &str) {
        let command = Command {
            kind: code::REFUSED,
            ..command
        };
        self.send_command(command, &call.name(), &[], &[], why);
    }

    /// What all commands have.
    pub(in crate::replay_capture) fn command(&self, call: &Call<'_>) -> Command {
        Command {
            number: self.commands + 1,
            time: clock::now(),
            context: call.callback.context_id,
            correlation: call.callback.correlation,
            thread: threads::thread_id(),
            ..Command::default()
        }
    }

    pub(in crate::replay_capture) fn send_command(
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
        let follows = if command.graph == 0 {
            Vec::new()
        } else {
            std::mem::take(&mut self.follows)
        };
        command.follows_bytes = follows.len() as u32;
        self.send(
            &command,
            &[name, parameters, attributes, &follows, why.as_bytes()],
        );
    }
}
