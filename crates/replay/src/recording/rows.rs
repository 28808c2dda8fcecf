//! Decodes the rows of a recording: strings, calls, memory, modules and the recorded machine.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{self, Moment, Text};
use tracesmith_format::{Columns, MAX_BLOCK_BYTES, ProcessId, Projection, Reader, StringId, Table};

use super::{Buffer, Command, MOST_MISSING, Origin, Piece};
use crate::contents::{Hash, Input, join};
use crate::error::Error;

pub(crate) fn rows<T: Table>(reader: &Reader<Input>) -> Result<Vec<T>, Error> {
    let mut rows = Vec::new();
    for block in reader
        .blocks()
        .iter()
        .filter(|block| block.header.kind == T::KIND)
    {
        let columns = reader.decoder().read::<T>(block, &Projection::all())?;
        rows.extend((0..columns.len()).map(|row| columns.row(row)));
    }
    Ok(rows)
}

pub(super) fn strings(reader: &Reader<Input>) -> Result<Vec<String>, Error> {
    let mut strings = vec![String::new()];
    let blocks = || {
        let blocks = reader.blocks().iter();
        blocks.filter(|block| block.header.kind == Text::KIND)
    };
    // IDs are consecutive. A damaged file lacks some of them, but not this many.
    let rows: u64 = blocks().map(|block| u64::from(block.header.rows)).sum();
    let most = rows + MOST_MISSING;
    for block in blocks().filter(|block| block.header.base <= most) {
        let texts = reader.decoder().read::<Text>(block, &Projection::all())?;
        let first = block.header.base as usize + 1;
        strings.resize(strings.len().max(first + texts.len()), String::new());
        for row in 0..texts.len() {
            strings[first + row] = String::from_utf8_lossy(texts.text.get(row)).into_owned();
        }
    }
    Ok(strings)
}

pub(crate) fn text(strings: &[String], id: StringId) -> String {
    strings.get(id.0 as usize).cloned().unwrap_or_default()
}

pub(super) fn command(row: tables::Command, strings: &[String]) -> Command {
    Command {
        number: row.number,
        correlation: row.correlation.0,
        kind: row.kind,
        stream: row.stream,
        object: row.object,
        function: text(strings, row.function),
        reason: text(strings, row.reason),
        module: row.module,
        grid: [row.grid_x, row.grid_y, row.grid_z],
        block: [row.block_x, row.block_y, row.block_z],
        shared: row.shared,
        parameters: row.parameters.0,
        attributes: row.attributes.0,
        destination: row.destination.0,
        source: row.source.0,
        bytes: row.bytes.0,
        value: row.value,
        width: row.width,
        graph: row.graph,
        follows: row
            .follows
            .0
            .as_chunks::<8>()
            .0
            .iter()
            .map(|number| u64::from_le_bytes(*number))
            .collect(),
        time: row.time.0,
        recorded: None,
    }
}

pub(super) type Memory = (Vec<Buffer>, Vec<Buffer>, FxHashMap<u64, Vec<Piece>>);

pub(super) fn memory(
    reader: &Reader<Input>,
    strings: &[String],
    process: ProcessId,
) -> Result<Memory, Error> {
    let mut pieces = [Vec::new(), Vec::new()];
    let mut brought: FxHashMap<u64, Vec<Piece>> = FxHashMap::default();
    for row in rows::<tables::Piece>(reader)?
        .iter()
        .filter(|row| row.process == process)
    {
        let piece = Piece {
            address: row.address.0,
            bytes: row.bytes.0,
            hash: join(row.hash_high, row.hash_low),
        };
        if piece.bytes > MAX_BLOCK_BYTES {
            return Err(Error::Missing(format!(
                "a valid piece of memory: one has {} bytes, more than is possible",
                piece.bytes
            )));
        }
        match row.moment {
            Moment::CALL => brought.entry(row.command).or_default().push(piece),
            Moment::END => pieces[1].push(piece),
            _ => pieces[0].push(piece),
        }
    }
    let mut buffers = [Vec::new(), Vec::new()];
    for row in rows::<tables::Buffer>(reader)?
        .iter()
        .filter(|row| row.process == process)
    {
        let which = usize::from(row.moment == Moment::END);
        buffers[which].push(Buffer {
            address: row.address.0,
            bytes: row.bytes.0,
            memory: row.memory,
            variable: text(strings, row.variable),
            module: row.module,
            pieces: Vec::new(),
        });
    }
    for (buffers, pieces) in buffers.iter_mut().zip(&mut pieces) {
        buffers.sort_by_key(|buffer| buffer.address);
        pieces.sort_by_key(|piece| piece.address);
        for buffer in buffers {
            let first = pieces.partition_point(|piece| piece.address < buffer.address);
            let end = buffer.address.saturating_add(buffer.bytes);
            let own = pieces[first..].iter().take_while(|piece| piece.address < end);
            buffer.pieces = own.copied().collect();
        }
    }
    let [begin, end] = buffers;
    Ok((begin, end, brought))
}

pub(super) fn rows_of_modules(
    reader: &Reader<Input>,
    process: ProcessId,
) -> Result<FxHashMap<u64, Hash>, Error> {
    let wanted = Projection::of::<tables::Module>(&["process", "hash_high", "hash_low", "handle"])?;
    let mut handles = FxHashMap::default();
    for block in reader.blocks().iter() {
        if block.header.kind != tables::Module::KIND {
            continue;
        }
        let modules = reader.decoder().read::<tables::Module>(block, &wanted)?;
        for row in 0..modules.handle.len() {
            if modules.handle[row] != 0 && modules.process[row] == process {
                // If a handle is reused, it refers to the module that was loaded last.
                handles.insert(
                    modules.handle[row],
                    join(modules.hash_high[row], modules.hash_low[row]),
                );
            }
        }
    }
    Ok(handles)
}

pub(super) fn origin(
    reader: &Reader<Input>,
    strings: &[String],
    process: ProcessId,
) -> Result<Origin, Error> {
    let processes = rows::<tables::Process>(reader)?;
    let host = processes.iter().find(|row| row.id == process).map(|row| row.host);
    let hosts = rows::<tables::Host>(reader)?;
    let found = hosts
        .iter()
        .find(|row| Some(row.id) == host)
        .or_else(|| hosts.first());
    Ok(found.map_or_else(Origin::default, |row| Origin {
        name: text(strings, row.name),
        machine_id: text(strings, row.machine_id),
    }))
}
