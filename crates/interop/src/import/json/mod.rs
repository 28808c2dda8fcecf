//! Trace-event JSON: what PyTorch's profiler (Kineto), Chrome, Perfetto's friends and MetaX's mcTracer write.
//!
//! One reader handles all of them. It reads a file through a moving [`window`]. [scan] finds where values end. [event]
//! stores the parts of one event as ranges of that text, so memory use depends on the largest event, not on the file.
//! [document] walks through the file, and [reading] decides what an event becomes. `docs/reference/interop/json.md` has
//! the mapping. Rows are written as their events come. Only open ranges are kept.

mod collectives;
mod copies;
mod correlations;
mod counts;
mod device_work;
mod document;
mod event;
mod header;
mod host_work;
mod marks;
mod number;
mod own;
mod ranges;
mod reading;
mod rest;
mod scan;
mod sniff;
mod stacks;
mod text;
mod times;
mod tracks;
mod window;

use crate::error::Error;
use crate::import::{Builder, ImportOptions, Importer, Input};
use document::documents;
use reading::Reading;
use times::Times;
use tracks::Tracks;
use window::Window;

pub(super) const KINETO: Importer = Importer {
    name: "kineto",
    title: "PyTorch profiler (Kineto) JSON",
    sniff: |head| sniff::flavour_of(head) == Some(Flavour::Kineto),
    read: |input, options, builder| read(Flavour::Kineto, input, options, builder),
};

pub(super) const CHROME: Importer = Importer {
    name: "chrome",
    title: "Chrome trace-event JSON",
    sniff: |head| sniff::flavour_of(head) == Some(Flavour::Chrome),
    read: |input, options, builder| read(Flavour::Chrome, input, options, builder),
};

pub(super) const MCTRACER: Importer = Importer {
    name: "mctracer",
    title: "MetaX mcTracer JSON",
    sniff: |head| sniff::flavour_of(head) == Some(Flavour::Mctracer),
    read: |input, options, builder| read(Flavour::Mctracer, input, options, builder),
};

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Kineto,
    Chrome,
    Mctracer,
}

fn read(
    flavour: Flavour,
    input: &mut Input,
    options: &ImportOptions,
    builder: &mut Builder<'_, '_>,
) -> Result<(), Error> {
    let file = input.name().to_owned();
    let number = builder.files();
    let (prefix, host) = match number {
        0 | 1 => ("import.".to_owned(), String::new()),
        _ => (format!("import.file{number}."), format!("host of file {number}")),
    };
    let host = builder.stand_in_host(&host)?;
    let mut reading = Reading {
        builder,
        flavour,
        file,
        prefix,
        times: Times::new(options.time_unit),
        tracks: Tracks::new(host),
        counts: Default::default(),
        rest: Default::default(),
        stacks: Default::default(),
        launches: Default::default(),
        collectives: Default::default(),
        copy_names: Default::default(),
        ranges: Default::default(),
        correlations: Default::default(),
        launch_arrows: Default::default(),
        rank: None,
        is_own: false,
        has_device_properties: false,
        keeps_occupancy: false,
        last_category: Default::default(),
    };
    let mut window = Window::new(input);
    documents(&mut window, &mut reading)?;
    reading.finish()
}
