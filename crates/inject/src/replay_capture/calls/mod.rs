//! Driver calls as commands of a replay capture.
//!
//! - [`allocations`]: memory that the program allocates and frees.
//! - [`commands`]: what a call becomes in the capture.
//! - [`launches`]: launches of kernels.

mod allocations;
mod commands;
mod launches;

use std::time::Duration;

use tracesmith_cuda::{
    cupti::{
        abi::{ApiCallback, SITE_EXIT},
        parameters::{
            Copy, CopyOf, GetVariable, Handles, Instantiate, KernelNode, Launch, LaunchEx, MakeTexture,
            Planes, Range, Rows, Set, SetFunctionAttribute, SetKernelAttribute, SetNode, SetNodeParameters,
            SetRows,
        },
    },
    driver::FunctionHandle,
};

use crate::replay_capture::{
    ReplayCapture, State,
    arguments::cooperative,
    copies::Setting,
    functions::{Action, Order, Wait},
    inside,
    memory::{Kind, Neighbours},
    modules::{self, Evidence, Module, has_seen_any},
};
use crate::{cuda::kinds::plain_name, guard::lock, threads};

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

use {given, pointed};

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
        // SAFETY: at the end of a call it is the call's result.
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
        let is_exit = callback.site == SITE_EXIT;
        let thread = threads::thread_id();
        let must_wait = |state: &State| {
            let is_in_call = || state.in_progress.iter().any(|(of, _)| *of == thread);
            state.stalled.is_others() || state.is_ending && !is_exit && !is_in_call()
        };
        while guard.as_ref().is_some_and(must_wait) {
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
        let progress = (thread, callback.correlation);
        if is_exit {
            state.in_progress.retain(|call| *call != progress);
        } else if state.is_window && action.changes_memory() {
            state.in_progress.push(progress);
        }
        inside(|| {
            state.take_reports();
            state.send_begin();
            if is_exit {
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
}
