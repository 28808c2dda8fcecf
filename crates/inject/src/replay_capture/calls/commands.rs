//! Commands: what a call becomes in the capture.

use std::time::{Duration, Instant};

use tracesmith_cuda::driver::FunctionHandle;
use tracesmith_wire::record::Command;

use super::{Call, HOST_LIMIT, PER_THREAD, code};
use crate::{
    clock,
    replay_capture::{State, functions::Wait},
    threads,
};

impl State {
    /// A function of the host has its turn in a stream. What it changes in memory
    /// of the host belongs to the capture, so it must have run.
    pub(super) fn host_function(&mut self, call: &Call<'_>, stream: usize) {
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

    /// An attribute stays, so it is told whenever it is set.
    pub(super) fn attribute(
        &mut self,
        call: &Call<'_>,
        function: FunctionHandle,
        attribute: u32,
        value: i32,
    ) {
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

    pub(super) fn simple(&mut self, call: &Call<'_>, kind: u8, stream: u64, object: u64) {
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
            correlation: u64::from(call.callback.correlation),
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
