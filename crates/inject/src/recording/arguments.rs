//! What a launch is told: the kernel's parameters, and attributes.

use tracesmith_cuda::{
    cupti::parameters::{EXTRA_END, EXTRA_POINTER, EXTRA_SIZE, Launch, LaunchAttribute},
    driver::Parameter,
};

/// The attribute that makes a launch cooperative: `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;

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
