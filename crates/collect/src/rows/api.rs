//! Runtime and driver API calls, CUPTI overhead, and compilations.

use tracesmith_format::{
    CorrelationId, Timestamp,
    tables::{ApiCall, ApiDomain, ApiShape, HostCall, HostCallKind, HostShape},
};
use tracesmith_wire::record as wire;

use super::{Definitions, ProcessRows, RecordOutcome, TraceRows, launches::Call};

impl ProcessRows {
    #[inline]
    pub(super) fn api_call(
        &mut self,
        record: &wire::ApiCall,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let name = self.string(record.name, definitions);
        let (Some(name), Some(stack)) = (name, self.stack_id(record.stack, definitions)) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = ApiCall {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            correlation: CorrelationId(record.correlation),
            stack,
            caller: self.caller(record.thread, trace),
            shape: ApiShape {
                name,
                domain: ApiDomain(record.domain),
                function: u32::from(record.function),
                result: record.result,
            },
        };
        // CUPTI's own API records contain a runtime call and the driver call inside it. Only one of the two launches
        // the kernel.
        if record.clock == wire::HOST_CLOCK && trace.has_kernels {
            self.launches.call(Call {
                name: record.name,
                thread: record.thread,
                correlation: record.correlation,
                result: record.result,
            });
        }
        trace.counts.api_calls += 1;
        trace.push(self.clock_of(record.clock), &row);
        RecordOutcome::Done
    }

    pub(super) fn overhead(
        &mut self,
        record: &wire::Overhead,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let Some(name) = self.string(record.name, definitions) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = HostCall {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            correlation: CorrelationId(record.correlation),
            caller: self.caller(record.thread, trace),
            shape: HostShape {
                name,
                kind: HostCallKind::OVERHEAD,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        trace.counts.host_calls += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }

    pub(super) fn compile(
        &mut self,
        record: &wire::Compile,
        definitions: Definitions,
        trace: &mut TraceRows,
    ) -> RecordOutcome {
        let Some(name) = self.string(record.name, definitions) else {
            return RecordOutcome::NeedsDefinitions;
        };
        let row = HostCall {
            start: Timestamp(record.start),
            end: Timestamp(record.end),
            correlation: CorrelationId(record.correlation),
            argument: record.bytes,
            caller: self.caller(record.thread, trace),
            shape: HostShape {
                name,
                kind: HostCallKind::COMPILE,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        trace.counts.host_calls += 1;
        trace.push(self.clock, &row);
        RecordOutcome::Done
    }
}
