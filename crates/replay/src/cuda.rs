//! Launches recorded kernels.

#![allow(unsafe_code, reason = "launches kernels that a program launched")]

use tracesmith_cuda::Error;
use tracesmith_cuda::driver::{Function, Launch, LaunchAttribute, Stream};

use crate::recording::Command;

/// Size of a launch attribute in the file: its ID and its value.
const ATTRIBUTE_BYTES: usize = 72;

/// Launch attributes that affect the result, or whether the kernel can run: `CU_LAUNCH_ATTRIBUTE_` COOPERATIVE,
/// CLUSTER_DIMENSION and CLUSTER_SCHEDULING_POLICY_PREFERENCE. Other attributes affect only timing, or refer to
/// objects of the recorded process.
const KEPT_ATTRIBUTES: [u32; 3] = [2, 4, 5];

/// Launches a recorded kernel with its recorded parameters.
pub(crate) fn launch(
    function: &Function,
    command: &Command,
    parameters: &[u8],
    stream: Option<&Stream>,
) -> Result<(), Error> {
    let attributes = kept_attributes(command);
    let launch = Launch {
        grid: command.grid,
        block: command.block,
        shared_bytes: command.shared,
    };
    // SAFETY: a program made this launch with these parameters, and the memory that it used is mapped at the same
    // addresses. This process has no other memory on the device that the kernel could damage.
    unsafe { function.launch_with(launch, parameters, &attributes, stream) }
}

/// The launch attributes that a replay uses.
pub(crate) fn kept_attributes(command: &Command) -> Vec<LaunchAttribute> {
    attributes(&command.attributes)
        .filter(|attribute| KEPT_ATTRIBUTES.contains(&attribute.id))
        .collect()
}

fn attributes(bytes: &[u8]) -> impl Iterator<Item = LaunchAttribute> {
    bytes.as_chunks::<ATTRIBUTE_BYTES>().0.iter().map(|attribute| {
        let (id, value) = attribute.split_at(8);
        LaunchAttribute {
            id: u32::from_le_bytes([id[0], id[1], id[2], id[3]]),
            value: value.try_into().expect("64 bytes are left"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_told() {
        let mut bytes = 4u64.to_le_bytes().to_vec();
        bytes.extend((0..64).map(|byte| byte as u8));
        bytes.extend_from_slice(&bytes.clone());
        let found: Vec<LaunchAttribute> = attributes(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].id, found[1].value[63]), (4, 63));
        assert_eq!(attributes(&bytes[..71]).count(), 0, "a piece of one is none");
    }
}
