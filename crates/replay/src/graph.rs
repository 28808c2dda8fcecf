//! Replays CUDA graphs: the same nodes with the same dependencies.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tracesmith_cuda::driver::{Capture, Nodes};
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::Command;
use crate::run::{Fresh, Replay};

impl Replay<'_> {
    /// Whether the nodes can be launched as one graph. Nodes that wait for the host or for events of other streams
    /// are run one by one, in dependency order.
    pub(crate) fn launches_whole(&self, nodes: &[Command]) -> bool {
        let fits = |node: &Command| match node.kind {
            CommandKind::LAUNCH => !self.recording.brought.contains_key(&node.number),
            CommandKind::COPY => {
                let is_ready = self.brought_at.contains_key(&node.number)
                    || !self.recording.brought.contains_key(&node.number);
                is_ready && self.stage.holds(self.place(node.destination), node.bytes)
            }
            CommandKind::SET => true,
            // Filling memory synchronizes with all work.
            CommandKind::ALLOCATE => self.fresh == Fresh::Once,
            CommandKind::FREE => true,
            _ => false,
        };
        nodes.iter().all(fits)
    }

    /// Launches a graph. Instantiates it the first time.
    pub(crate) fn launch_graph(&mut self, command: &Command, nodes: &[Command]) -> Result<(), Error> {
        if !self.graphs.contains_key(&command.number) {
            self.make_graph(command, nodes)?;
        }
        let graph = &self.graphs[&command.number];
        match self.stream(command) {
            Some(stream) => graph.launch(stream),
            None => graph.launch_everywhere(),
        }
        .map_err(Error::device("launching the graph"))
    }

    fn make_graph(&mut self, command: &Command, nodes: &[Command]) -> Result<(), Error> {
        let failed = || Error::device("creating the graph");
        let stream = Rc::new(self.context.stream().map_err(failed())?);
        let capture = Capture::begin(&stream).map_err(failed())?;
        self.captured = Some(stream.clone());
        let made = self.capture(&capture, nodes);
        self.captured = None;
        made?;
        let graph = capture.end().map_err(failed())?;
        self.graphs.insert(command.number, graph);
        Ok(())
    }

    fn capture(&mut self, capture: &Capture<'_>, nodes: &[Command]) -> Result<(), Error> {
        let mut made: FxHashMap<u64, Nodes> = FxHashMap::default();
        for node in nodes {
            let before: Vec<&Nodes> = node
                .follows
                .iter()
                .filter_map(|number| made.get(number))
                .collect();
            let own = capture.follow(&before, |_| self.issue(node).map_err(|error| error.of_call(node)))?;
            made.insert(node.number, own);
        }
        Ok(())
    }

    /// Instantiates all graphs in advance, so that this is not part of a run.
    pub(crate) fn make_graphs(&mut self) -> Result<(), Error> {
        let commands = std::mem::take(&mut self.recording.commands);
        let made = commands.iter().enumerate().try_for_each(|(place, command)| {
            let behind = &commands[place + 1..];
            match crate::run::nodes_of(command, behind) {
                Some(nodes) if self.launches_whole(nodes) && !self.graphs.contains_key(&command.number) => {
                    self.make_graph(command, nodes)
                }
                _ => Ok(()),
            }
        });
        self.recording.commands = commands;
        made
    }
}
