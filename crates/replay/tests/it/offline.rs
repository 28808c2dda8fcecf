//! What a recording says about memory without a GPU: the content before a call, and never that of another moment.

use tracesmith_replay::Content;

use crate::support::window::{BASE, Window, copy, fill, set};
use crate::support::words;

const X: u64 = BASE;
const Y: u64 = BASE + 0x1000;
/// Nothing is recorded of it at the beginning.
const LATE: u64 = BASE + 0x2000;

/// Every call changes something, so each content belongs to one moment only.
fn window() -> Window {
    let mut window = Window::new();
    window.changed(X, &words(&[1, 1]), &words(&[6, 6]));
    window.changed(Y, &words(&[2, 2]), &words(&[7, 7]));
    window.end(LATE, &words(&[8, 8]));
    window.call(copy(Y, X, 8));
    window.call(set(X, 3, 4, 8));
    window.call(fill(X, 5, 2));
    window.call(set(X, 6, 4, 8));
    window.call(set(Y, 7, 4, 8));
    window.call(set(LATE, 8, 4, 8));
    window
}

fn known(values: &[u32]) -> Content {
    Content::Known(words(values))
}

#[test]
fn memory_is_what_it_was_before_a_call() {
    let mut recording = window().open();
    let mut before = |place: usize, address: u64| recording.content_before(place, address, 8).unwrap();
    assert_eq!((before(0, X), before(0, Y)), (known(&[1, 1]), known(&[2, 2])));
    assert_eq!((before(1, X), before(1, Y)), (known(&[1, 1]), known(&[1, 1])));
    // What was copied is what the source held then.
    assert_eq!((before(2, X), before(2, Y)), (known(&[3, 3]), known(&[1, 1])));
    assert_eq!((before(4, X), before(5, Y)), (known(&[6, 6]), known(&[7, 7])));
    assert_eq!((before(6, X), before(6, Y)), (known(&[6, 6]), known(&[7, 7])));
}

/// The end is no answer while a call can still change the memory.
#[test]
fn memory_that_a_kernel_may_have_written_is_not_known() {
    let mut recording = window().open();
    let mut before = |place: usize, address: u64| recording.content_before(place, address, 8).unwrap();
    let by_kernel = Content::Unknown {
        call: Some(3),
        name: "fill".to_owned(),
    };
    assert_eq!(before(3, X), by_kernel);
    assert_eq!(before(4, Y), by_kernel);
    assert_eq!(before(3, LATE), by_kernel);
    let by_nobody = Content::Unknown {
        call: None,
        name: String::new(),
    };
    assert_eq!(before(2, LATE), by_nobody);
    assert_eq!(before(6, LATE), known(&[8, 8]));
}
