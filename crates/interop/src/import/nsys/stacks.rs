//! Call chains: one row for each frame, put together into stacks.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Frame, FrameKind, HealthCause};
use tracesmith_format::{Address, FrameId, ProcessId, StackId};

use super::session::Session;
use crate::error::Error;
use crate::import::Builder;

/// Frames that a stack is believed to have.
const MAX_FRAMES: usize = 10_000;

/// All stacks of a table by their numbers. Memory follows the number of stacks.
pub(super) fn chains(
    table: &str,
    session: &mut Session<'_>,
    builder: &mut Builder<'_, '_>,
) -> Result<FxHashMap<i64, StackId>, Error> {
    let mut stacks = FxHashMap::default();
    let db = session.db;
    let Some(mut query) = db.query(table) else {
        return Ok(stacks);
    };
    if !query.has("id") || !query.has("stackDepth") {
        return Ok(stacks);
    }
    let (id, symbol, module) = (query.column("id"), query.column("symbol"), query.column("module"));
    let (address, kernel) = (query.column("originalIP"), query.column("kernelMode"));
    query.ordered(&["id", "stackDepth"]);
    let mut chain = Chain::default();
    db.read(&query, builder, |row, builder| {
        let Some(id) = row.integer(id) else {
            return Ok(());
        };
        if chain.id != Some(id) {
            chain.finish(&mut stacks, builder)?;
            chain.id = Some(id);
        }
        let module = session.name(row.integer(module), builder)?;
        let frame = Frame {
            kind: match row.integer(kernel) {
                Some(1..) => FrameKind::KERNEL,
                _ => FrameKind::NATIVE,
            },
            image: builder.image_at(ProcessId::NONE, module)?,
            address: Address(row.integer(address).unwrap_or(0) as u64),
            function: session.name(row.integer(symbol), builder)?,
            ..Frame::default()
        };
        if chain.frames.len() < MAX_FRAMES {
            chain.frames.push(builder.frame(frame)?);
        } else {
            builder.doubt(HealthCause::OTHER, "frames beyond a depth of 10,000", 1);
        }
        Ok(())
    })?;
    chain.finish(&mut stacks, builder)?;
    Ok(stacks)
}

/// A stack in the making, its innermost frame first.
#[derive(Default)]
struct Chain {
    id: Option<i64>,
    frames: Vec<FrameId>,
}

impl Chain {
    fn finish(
        &mut self,
        stacks: &mut FxHashMap<i64, StackId>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        if let Some(id) = self.id.take() {
            let stack = builder.stack(self.frames.drain(..).rev())?;
            stacks.insert(id, stack);
        }
        Ok(())
    }
}
