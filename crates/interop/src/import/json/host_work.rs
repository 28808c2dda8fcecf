//! What the host did: calls of the GPU's interface, operators, Python functions, and what the profiler itself did.

use tracesmith_format::tables::{ApiCall, ApiDomain, ApiShape, FlowShape, HostCall, HostCallKind, HostShape};
use tracesmith_format::{CorrelationId, StackId, StringId};

use crate::error::Error;
use crate::import::json::Flavour;
use crate::import::json::device_work::LaunchParameters;
use crate::import::json::event::{Event, number_or_none, three};
use crate::import::json::number::{signed, unsigned};
use crate::import::json::reading::Reading;
use crate::import::json::tracks::Asking;

impl Reading<'_, '_, '_> {
    pub(super) fn api_call(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (mut correlation, mut external, mut function) = (CorrelationId::NONE, None, 0);
        let mut launch = LaunchParameters::default();
        self.rest.clear();
        for (key, value) in event.arguments() {
            match key {
                b"External id" | b"external id" if value != b"0" => external = unsigned(value),
                b"correlation" => correlation = CorrelationId(number_or_none(value)),
                b"cbid" | b"cid" => function = number_or_none(value),
                _ => {
                    match key {
                        b"grid" => launch.grid = Some(three(value)),
                        b"block" => launch.block = Some(three(value)),
                        b"shared memory" => launch.shared = number_or_none(value),
                        _ => {}
                    }
                    self.rest.add(key, value);
                }
            }
        }
        if launch.grid.is_some() && correlation.is_some() {
            self.launches.add(correlation, launch);
        }
        let (start, end) = self.span(event);
        let caller = self.caller(event, Asking::Api)?;
        let row = ApiCall {
            start,
            end,
            correlation,
            stack: StackId::NONE,
            caller,
            shape: ApiShape {
                name: self.name(event)?,
                domain: domain_of(event.category(), event.raw_name(), self.flavour),
                function: u32::try_from(function).unwrap_or(u32::MAX),
                result: 0,
            },
        };
        self.push(&row)?;
        let shape = FlowShape {
            process: caller.process,
            thread: caller.thread,
            ..FlowShape::default()
        };
        self.external(start, correlation, external, shape)
    }

    pub(super) fn operator(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let mut row = HostCall::default();
        let mut is_collective = false;
        self.rest.clear();
        for (key, value) in event.arguments() {
            match key {
                b"External id" | b"external id" => row.correlation = CorrelationId(number_or_none(value)),
                b"Ev Idx" | b"Profiler Event Index" => row.argument = unsigned(value).unwrap_or(0),
                b"Sequence number" => row.sequence = signed(value).unwrap_or(0),
                b"Call stack" => row.stack = self.stacks.of_text(self.builder, value)?,
                _ => {
                    is_collective |= key == b"Collective name";
                    self.rest.add(key, value);
                }
            }
        }
        row.detail = self.rest.store(self.builder)?;
        let name = self.name(event)?;
        self.framework_call(event, name, HostCallKind::OPERATOR, &mut row)?;
        if is_collective && row.correlation.is_some() {
            self.operator_collective(event, row.correlation.0, (row.start, row.end), row.caller.process)?;
        }
        Ok(())
    }

    /// Fills in what all host work of PyTorch has in common, and adds the row.
    #[inline]
    fn framework_call(
        &mut self,
        event: &Event<'_>,
        name: StringId,
        kind: HostCallKind,
        row: &mut HostCall,
    ) -> Result<(), Error> {
        (row.start, row.end) = self.span(event);
        row.caller = self.caller(event, Asking::Framework)?;
        row.shape = HostShape {
            name,
            kind,
            category: self.category(event)?,
            ..HostShape::default()
        };
        self.push(row)
    }

    /// A Python function. Its own number is its argument, its caller's the correlation: as texts they would all differ.
    pub(super) fn python_function(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let mut row = HostCall::default();
        let (mut id, mut parent) = (None, None);
        self.rest.clear();
        for (key, value) in event.arguments() {
            match key {
                b"Python id" => id = unsigned(value),
                b"Python parent id" => parent = unsigned(value),
                b"Ev Idx" => self.counts.python_indices += 1,
                _ => self.rest.add(key, value),
            }
        }
        row.argument = id.unwrap_or(0);
        let text = event.name();
        let name = self.builder.string(&text)?;
        row.correlation = CorrelationId(parent.unwrap_or(0));
        let caller = self.stacks.python_call(self.builder, (name, &text), id, parent)?;
        (row.stack, row.depth) = caller.unwrap_or_default();
        row.detail = self.rest.store(self.builder)?;
        self.framework_call(event, name, HostCallKind::PYTHON, &mut row)
    }

    pub(super) fn overhead(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let mut row = HostCall {
            detail: self.all_arguments(event)?,
            ..HostCall::default()
        };
        let name = self.name(event)?;
        self.framework_call(event, name, HostCallKind::OVERHEAD, &mut row)
    }

    /// A sample of the file's list of them.
    pub(super) fn listed_sample(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.times.see(self.builder, &self.file, event.time())?;
        self.sample(event)
    }

    pub(super) fn sample(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let time = self.moment(event);
        let row = HostCall {
            start: time,
            end: time,
            stack: self.stack(event)?,
            argument: event.weight().unwrap_or(1),
            detail: self.all_arguments(event)?,
            caller: self.caller(event, Asking::Other)?,
            shape: HostShape {
                name: self.name(event)?,
                kind: HostCallKind::SAMPLE,
                category: self.category(event)?,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        self.push(&row)
    }

    /// Events of mcTracer, whose categories are not written down: told by the words in them, and by the names of calls.
    pub(super) fn mctracer(&mut self, category: &[u8], event: &Event<'_>) -> Result<(), Error> {
        let category = category.to_ascii_lowercase();
        let says = |word: &[u8]| memchr::memmem::find(&category, word).is_some();
        if is_maca_call(event.raw_name()) {
            self.api_call(event)
        } else if says(b"kernel") {
            self.kernel(event)
        } else if says(b"memcpy") || says(b"copy") {
            self.copy(event)
        } else if says(b"memset") {
            self.set(event)
        } else {
            self.custom(event)
        }
    }
}

/// `mcLaunchKernel`, `mcMemcpyAsync`: calls of MetaX's runtime.
pub(super) fn is_maca_call(name: &[u8]) -> bool {
    matches!(name, [b'm', b'c', b'A'..=b'Z', ..])
}

/// The interface that a call belongs to. PyTorch writes calls of HIP under the category of CUDA's runtime.
fn domain_of(category: &[u8], name: &[u8], flavour: Flavour) -> ApiDomain {
    match name {
        [b'h', b'i', b'p', ..] => ApiDomain::HIP,
        [b'h', b's', b'a', b'_', ..] => ApiDomain::HSA,
        _ if is_maca_call(name) || flavour == Flavour::Mctracer => ApiDomain::MACA,
        [b'c', b'u', b'A'..=b'Z', ..] => ApiDomain::CUDA_DRIVER,
        _ => match category {
            b"cuda_driver" | b"driver" => ApiDomain::CUDA_DRIVER,
            b"hip_runtime" | b"hip_driver" => ApiDomain::HIP,
            category if category.starts_with(b"hsa") => ApiDomain::HSA,
            _ => ApiDomain::CUDA_RUNTIME,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_belong_to_their_interface() {
        for (category, name, domain) in [
            ("cuda_runtime", "cudaLaunchKernel", ApiDomain::CUDA_RUNTIME),
            ("cuda_driver", "cuLaunchKernelEx", ApiDomain::CUDA_DRIVER),
            ("Runtime", "cudaMemcpyAsync", ApiDomain::CUDA_RUNTIME),
            ("cuda_runtime", "hipLaunchKernel", ApiDomain::HIP),
            ("hsa_api", "hsa_signal_wait", ApiDomain::HSA),
            ("runtime", "mcLaunchKernel", ApiDomain::MACA),
        ] {
            let found = domain_of(category.as_bytes(), name.as_bytes(), Flavour::Kineto);
            assert_eq!(found, domain, "{name}");
        }
    }
}
