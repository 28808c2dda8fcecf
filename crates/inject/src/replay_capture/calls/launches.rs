//! Launches of kernels.

use std::sync::Arc;

use tracesmith_cuda::{
    cupti::parameters::{Launch, LaunchAttribute},
    driver::FunctionHandle,
};
use tracesmith_wire::record::Command;

use super::{Call, code};
use crate::replay_capture::{
    Function, State,
    arguments::{bytes_of, events, objection, parameters, words},
    foreign::is_collective,
    memory::Reached,
};

impl State {
    /// # Safety
    ///
    /// The launch's pointers are as the driver wants them.
    pub(super) unsafe fn launch(&mut self, call: &Call<'_>, launch: &Launch, attributes: &[LaunchAttribute]) {
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
}
