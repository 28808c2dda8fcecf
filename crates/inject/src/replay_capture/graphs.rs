//! Graphs: what each node does is read when a graph is made ready, and told when
//! it is launched.

use std::collections::HashMap;

use tracesmith_cuda::{
    cupti::parameters::{KernelNode, Launch, LaunchAttribute, Planes, SetNode},
    driver::{FunctionHandle, GraphHandle, NodeHandle, NodeKind},
};
use tracesmith_wire::record::Command;

use super::{
    Since, State,
    arguments::objection,
    calls::{Call, code},
    copies::Setting,
    foreign::{COLLECTIVE, is_collective},
    memory::{Kind, Neighbours},
    textures::ARRAY,
};

/// Graphs within graphs, at most.
const DEPTH: usize = 16;

/// Why a kernel of a graph is refused: the driver tells such code only when a
/// kernel of it is launched by itself.
const LOADED_BEFORE: &str = "a kernel of a graph whose code was loaded before the recording began";

/// Why a graph cannot be followed.
const CHANGED: &str = "a graph that was changed in a way that is not followed";
const UNKNOWN: &str = "a graph that was made before anyone watched, or that the driver does not tell of";

/// Graphs that are ready to be launched, by their handles.
#[derive(Default)]
pub(super) struct Graphs {
    ready: HashMap<u64, Ready>,
}

enum Ready {
    Known(Vec<Node>),
    Refused(&'static str),
}

/// A node, in an order in which each comes behind those that it follows.
#[derive(Clone)]
struct Node {
    handle: NodeHandle,
    /// Places of those that it follows.
    follows: Vec<usize>,
    work: Work,
}

#[derive(Clone)]
enum Work {
    Kernel(Box<Kernel>),
    Copy(Box<Planes>),
    Set(SetNode),
    Host,
    WaitEvent(u64),
    RecordEvent(u64),
    Allocate { address: u64, bytes: u64 },
    Free(u64),
    Nothing,
    Refused(&'static str),
}

#[derive(Clone)]
struct Kernel {
    handle: FunctionHandle,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    parameters: Option<Vec<u8>>,
    attributes: Vec<LaunchAttribute>,
}

impl State {
    /// A graph is ready to be launched, or does what another graph does.
    pub(super) fn learn_graph(&mut self, executable: u64, graph: u64) {
        let mut nodes = Vec::new();
        let known = self.flatten(GraphHandle(graph), &[], &mut nodes, DEPTH);
        let ready = known.map_or(Ready::Refused(UNKNOWN), |_| Ready::Known(nodes));
        self.graphs.ready.insert(executable, ready);
    }

    pub(super) fn forget_graph(&mut self, executable: u64) {
        self.graphs.ready.remove(&executable);
    }

    pub(super) fn graph_changed(&mut self, executable: u64) {
        self.graphs.ready.insert(executable, Ready::Refused(CHANGED));
    }

    /// A node of a graph that is ready does something else from now on.
    ///
    /// # Safety
    ///
    /// Its pointers are as the driver wants them.
    pub(super) unsafe fn set_kernel_node(&mut self, executable: u64, node: u64, given: &KernelNode) {
        // SAFETY: the caller vouches for it.
        let kernel = unsafe { self.kernel(given) };
        self.set_node(executable, node, |work| match work {
            Work::Kernel(old) => {
                let attributes = std::mem::take(&mut old.attributes);
                **old = Kernel { attributes, ..kernel };
                true
            }
            _ => false,
        });
    }

    pub(super) fn set_copy_node(&mut self, executable: u64, node: u64, given: &Planes) {
        self.set_node(executable, node, |work| {
            *work = Work::Copy(Box::new(*given));
            true
        });
    }

    pub(super) fn set_set_node(&mut self, executable: u64, node: u64, given: &SetNode) {
        self.set_node(executable, node, |work| {
            *work = Work::Set(*given);
            true
        });
    }

    fn set_node(&mut self, executable: u64, node: u64, change: impl FnOnce(&mut Work) -> bool) {
        let Some(Ready::Known(nodes)) = self.graphs.ready.get_mut(&executable) else {
            return;
        };
        let own = nodes.iter_mut().find(|each| each.handle.0 == node);
        if !own.is_some_and(|own| change(&mut own.work)) {
            self.graph_changed(executable);
        }
    }

    /// Appends the nodes of a graph; gives back the places that what comes behind
    /// the graph follows.
    fn flatten(
        &self,
        graph: GraphHandle,
        before: &[usize],
        nodes: &mut Vec<Node>,
        depth: usize,
    ) -> Option<Vec<usize>> {
        if depth == 0 {
            return None;
        }
        let handles = self.driver.nodes(graph)?;
        let edges = self.driver.edges(graph)?;
        let mut waiting: HashMap<NodeHandle, usize> = HashMap::new();
        let mut behind: HashMap<NodeHandle, Vec<NodeHandle>> = HashMap::new();
        for edge in &edges {
            *waiting.entry(edge.to).or_default() += 1;
            behind.entry(edge.from).or_default().push(edge.to);
        }
        // What stands for a node to those that follow it; a graph is its last nodes.
        let mut ends: HashMap<NodeHandle, Vec<usize>> = HashMap::new();
        let mut follows: HashMap<NodeHandle, Vec<usize>> = HashMap::new();
        let mut ready: std::collections::VecDeque<NodeHandle> = handles
            .iter()
            .filter(|handle| !waiting.contains_key(handle))
            .copied()
            .collect();
        while let Some(handle) = ready.pop_front() {
            let own = follows.remove(&handle).unwrap_or_else(|| before.to_vec());
            let end = match self.driver.node(handle)? {
                NodeKind::Graph(child) => self.flatten(child, &own, nodes, depth - 1)?,
                kind => {
                    nodes.push(Node {
                        handle,
                        follows: own,
                        work: self.work(handle, kind),
                    });
                    vec![nodes.len() - 1]
                }
            };
            for next in behind.remove(&handle).unwrap_or_default() {
                follows.entry(next).or_default().extend(&end);
                if let Some(left) = waiting.get_mut(&next) {
                    *left -= 1;
                    if *left == 0 {
                        ready.push_back(next);
                    }
                }
            }
            ends.insert(handle, end);
        }
        let followed: std::collections::HashSet<NodeHandle> = edges.iter().map(|edge| edge.from).collect();
        let mut last: Vec<usize> = ends
            .into_iter()
            .filter(|(handle, _)| !followed.contains(handle))
            .flat_map(|(_, end)| end)
            .collect();
        last.sort_unstable();
        if last.is_empty() {
            last = before.to_vec();
        }
        Some(last)
    }

    fn work(&self, handle: NodeHandle, kind: NodeKind) -> Work {
        match kind {
            NodeKind::Kernel(given) => {
                // SAFETY: the driver's own copy of the parameters, which lives as long as the node.
                let kernel = unsafe { self.kernel(&given) };
                Work::Kernel(Box::new(Kernel {
                    attributes: self.driver.node_attributes(handle),
                    ..kernel
                }))
            }
            NodeKind::Copy(planes) => Work::Copy(Box::new(planes)),
            NodeKind::Set(set) => Work::Set(set),
            NodeKind::Host => Work::Host,
            NodeKind::WaitEvent(event) => Work::WaitEvent(event),
            NodeKind::RecordEvent(event) => Work::RecordEvent(event),
            NodeKind::Allocate(taken) => Work::Allocate {
                address: taken.address,
                bytes: taken.bytes as u64,
            },
            NodeKind::Free(address) => Work::Free(address),
            NodeKind::Empty | NodeKind::Graph(_) => Work::Nothing,
            NodeKind::Other(13) => Work::Refused("a node of a graph that decides what runs"),
            NodeKind::Other(_) => Work::Refused("a node of a graph of a kind that recordings do not know"),
        }
    }

    /// # Safety
    ///
    /// The node's pointers are as the driver wants them.
    unsafe fn kernel(&self, given: &KernelNode) -> Kernel {
        let handle = if given.function.is_null() {
            given.kernel
        } else {
            given.function
        };
        let handle = FunctionHandle(handle as usize);
        let launch = Launch {
            function: given.function,
            grid: given.grid,
            block: given.block,
            shared: given.shared,
            stream: std::ptr::null_mut(),
            parameters: given.parameters,
            extra: given.extra,
        };
        // SAFETY: the caller vouches for it.
        let parameters = self
            .driver
            .parameters(handle)
            .and_then(|parameters| unsafe { super::arguments::parameters(&parameters, &launch) });
        Kernel {
            handle,
            grid: given.grid,
            block: given.block,
            shared: given.shared,
            parameters,
            attributes: Vec::new(),
        }
    }

    /// A graph is launched: tells it, and what each node does.
    pub(super) fn launch_graph(&mut self, call: &Call<'_>, executable: u64, stream: usize) {
        if self.is_captured(stream) {
            // It becomes a node of the graph that is captured, which is read when that one is ready.
            return;
        }
        let nodes = match self.graphs.ready.get(&executable) {
            Some(Ready::Known(nodes)) => nodes.clone(),
            Some(Ready::Refused(why)) => {
                let why = *why;
                self.refuse(call, why);
                return;
            }
            None => {
                self.refuse(call, UNKNOWN);
                return;
            }
        };
        // What must be told of textures and arrays stands before the graph, whose nodes stand together.
        self.reach_textures(&self.command(call));
        for node in &nodes {
            if let Work::Copy(planes) = &node.work {
                for side in [&planes.source, &planes.destination] {
                    // One that is not known is refused with its node.
                    let _ = self.end_of(side, &self.command(call));
                }
            }
        }
        let command = Command {
            kind: code::GRAPH,
            stream: self.stream(call, stream),
            object: executable,
            bytes: nodes
                .iter()
                .filter(|node| !matches!(node.work, Work::Nothing))
                .count() as u64,
            ..self.command(call)
        };
        let (stream, graph) = (command.stream, command.number);
        self.send_command(command, &[], &[], &[], "");
        // The numbers that stand for each node: its own, or those of what it follows when it does nothing.
        let mut numbers: Vec<Vec<u64>> = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let mut follows: Vec<u64> = node
                .follows
                .iter()
                .filter_map(|place| numbers.get(*place))
                .flatten()
                .copied()
                .collect();
            follows.sort_unstable();
            follows.dedup();
            if matches!(node.work, Work::Nothing) {
                numbers.push(follows);
                continue;
            }
            self.follows = follows.iter().flat_map(|number| number.to_le_bytes()).collect();
            let command = Command {
                stream,
                graph,
                ..self.command(call)
            };
            self.node(call, command, &node.work);
            numbers.push(vec![self.commands]);
        }
        self.follows.clear();
    }

    fn node(&mut self, call: &Call<'_>, command: Command, work: &Work) {
        match work {
            Work::Kernel(kernel) => {
                let (Some(function), Some(parameters)) =
                    (self.known(kernel.handle, command.context), &kernel.parameters)
                else {
                    self.refuse_in(
                        command,
                        call,
                        "a kernel whose parameters the driver does not tell",
                    );
                    return;
                };
                if is_collective(&function.name) {
                    self.refuse_in(command, call, COLLECTIVE);
                    return;
                }
                if self.since == Since::Late && !self.memory.variables.knows(&function.name) {
                    self.refuse_in(command, call, LOADED_BEFORE);
                    return;
                }
                let foreign = self.memory.foreign.objection(parameters);
                let objection = foreign
                    .or_else(|| self.unknown_texture(parameters))
                    .or_else(|| objection(&kernel.attributes));
                if let Some(why) = objection {
                    self.refuse_in(command, call, why);
                    return;
                }
                let command = Command {
                    grid: kernel.grid,
                    block: kernel.block,
                    shared: kernel.shared,
                    ..command
                };
                self.send_launch(command, &function, parameters, &kernel.attributes);
            }
            Work::Copy(planes) => {
                // SAFETY: the program's own copy, which the graph is going to make.
                if unsafe { self.node_copy(command, planes) }.is_none() {
                    self.refuse_in(command, call, ARRAY);
                }
            }
            Work::Set(set) => self.send_set(
                Command {
                    kind: code::SET,
                    ..command
                },
                &Setting::of_node(set),
            ),
            // The capture waits until it has run, see `host_function`.
            Work::Host => self.refuse_in(command, call, "a function of the host within a graph"),
            Work::WaitEvent(event) => self.plain(command, code::WAIT_EVENT, *event),
            Work::RecordEvent(event) => self.plain(command, code::RECORD_EVENT, *event),
            Work::Allocate { address, bytes } => {
                self.memory
                    .took(*address, *bytes, Kind::Device, command.context, Neighbours::Apart);
                self.memory.reach_fresh(*address);
                let command = Command {
                    kind: code::ALLOCATE,
                    destination: *address,
                    bytes: *bytes,
                    value: u64::from(Kind::Device as u8),
                    ..command
                };
                self.send_command(command, &[], &[], &[], "");
            }
            Work::Free(address) => {
                self.memory.on_free(*address);
                let command = Command {
                    kind: code::FREE,
                    destination: *address,
                    ..command
                };
                self.send_command(command, &[], &[], &[], "");
            }
            Work::Nothing => {}
            Work::Refused(why) => self.refuse_in(command, call, why),
        }
    }

    /// # Safety
    ///
    /// The copy's addresses are as the driver wants them.
    unsafe fn node_copy(&mut self, command: Command, planes: &Planes) -> Option<()> {
        let ends = (planes.source.address(), planes.destination.address());
        if planes.height <= 1
            && planes.depth <= 1
            && let (Some(source), Some(destination)) = ends
        {
            let command = Command {
                kind: code::COPY,
                source,
                destination,
                bytes: planes.width as u64,
                ..command
            };
            // SAFETY: the caller vouches for it.
            unsafe { self.send_copy(command) };
            return Some(());
        }
        let command = Command {
            kind: code::COPY_PLANES,
            ..command
        };
        // SAFETY: as above.
        unsafe { self.send_planes(command, planes) }
    }

    fn plain(&mut self, command: Command, kind: u8, object: u64) {
        let command = Command {
            kind,
            object,
            ..command
        };
        self.send_command(command, &[], &[], &[], "");
    }
}
