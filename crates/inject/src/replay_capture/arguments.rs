//! What a launch is told: the kernel's parameters, and attributes.

use tracesmith_cuda::{
    cupti::parameters::{EXTRA_END, EXTRA_POINTER, EXTRA_SIZE, Launch, LaunchAttribute},
    driver::Parameter,
};

/// The attribute that makes a launch cooperative: `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT` and `_LAUNCH_COMPLETION_EVENT`: the launch records an event, whose handle the
/// value begins with.
const EVENTS: [u32; 2] = [7, 12];

/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`: kernels may change the launch.
const UPDATABLE: u32 = 13;

/// Attributes up to this number are known, of CUDA 13.0.
const LAST_KNOWN: u32 = 16;

/// Why a launch with these attributes cannot be made again, if so.
pub(super) fn objection(attributes: &[LaunchAttribute]) -> Option<&'static str> {
    attributes.iter().find_map(|attribute| match attribute.id {
        UPDATABLE if attribute.value[0] != 0 => Some("a launch that kernels may change"),
        id if id > LAST_KNOWN => Some("a launch with an attribute that recordings do not know"),
        _ => None,
    })
}

/// The events that a launch records.
pub(super) fn events(attributes: &[LaunchAttribute]) -> impl Iterator<Item = u64> {
    let recorded = attributes
        .iter()
        .filter(|attribute| EVENTS.contains(&attribute.id));
    recorded.filter_map(|attribute| words(&attribute.value).next())
}

/// What makes a launch cooperative.
pub(super) fn cooperative() -> LaunchAttribute {
    let mut value = [0; 64];
    value[0] = 1;
    LaunchAttribute {
        id: COOPERATIVE,
        padding: 0,
        value,
    }
}

/// An attribute as it is told.
pub(super) fn bytes_of(attribute: &LaunchAttribute) -> Vec<u8> {
    let mut bytes = u64::from(attribute.id).to_le_bytes().to_vec();
    bytes.extend_from_slice(&attribute.value);
    bytes
}

/// The aligned words of some bytes: any of them may be an address.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
}

/// The kernel's parameters as they lie in its parameter space.
///
/// # Safety
///
/// The launch's pointers are as the driver wants them.
pub(super) unsafe fn parameters(taken: &[Parameter], launch: &Launch) -> Option<Vec<u8>> {
    if !launch.parameters.is_null() {
        let end = taken.iter().map(|each| each.offset + each.bytes).max();
        let mut bytes = vec![0; end.unwrap_or(0)];
        for (index, each) in taken.iter().enumerate() {
            // SAFETY: one pointer for each parameter.
            let value = unsafe { launch.parameters.wrapping_add(index).read() };
            if value.is_null() {
                return None;
            }
            // SAFETY: it points to so many bytes.
            let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), each.bytes) };
            bytes[each.offset..each.offset + each.bytes].copy_from_slice(value);
        }
        return Some(bytes);
    }
    if launch.extra.is_null() {
        return taken.is_empty().then(Vec::new);
    }
    let (mut pointer, mut size, mut at) = (std::ptr::null::<u8>(), 0, 0);
    loop {
        // SAFETY: a list of pairs that ends with a zero.
        let word = unsafe { launch.extra.wrapping_add(at).read() } as usize;
        if word == EXTRA_END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { launch.extra.wrapping_add(at + 1).read() };
        match word {
            EXTRA_POINTER => pointer = value.cast(),
            // SAFETY: it points to a size.
            EXTRA_SIZE => size = unsafe { value.cast::<usize>().read() },
            _ => return None,
        }
        at += 2;
    }
    // SAFETY: the program says that so many bytes lie there.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer, size) }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(id: u32, first: u64) -> LaunchAttribute {
        let mut value = [0; 64];
        value[..8].copy_from_slice(&first.to_le_bytes());
        LaunchAttribute {
            id,
            padding: 0,
            value,
        }
    }

    #[test]
    fn a_launch_that_cannot_be_made_again_is_refused() {
        assert_eq!(
            objection(&[cooperative(), attribute(4, 2), attribute(13, 0)]),
            None
        );
        assert!(objection(&[attribute(13, 1)]).is_some());
        assert!(objection(&[cooperative(), attribute(17, 0)]).is_some());
    }

    #[test]
    fn events_that_launches_record_are_found() {
        let attributes = [attribute(7, 0x5000), attribute(2, 1), attribute(12, 0x6000)];
        assert_eq!(events(&attributes).collect::<Vec<_>>(), [0x5000, 0x6000]);
    }
}
