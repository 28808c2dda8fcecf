//! A ring within one process: the same protocol on plain heap memory.
//!
//! For two threads of one program, and for everything that checks the protocol
//! where shared memory cannot go: loom, Miri, property tests.

use crate::{
    config::Config, consumer::Consumer, fork::ForkGuard, memory::Region, producer::Producer, sync::Arc,
};

/// Both ends of a new ring.
pub fn in_process(config: Config) -> (Producer, Consumer) {
    let region = Region::on_heap(config.capacity);
    region.header().describe(config);
    let region = Arc::new(region);
    let producer = Producer::new(Arc::clone(&region), config, ForkGuard::Unneeded);
    (producer, Consumer::new(region, config))
}
