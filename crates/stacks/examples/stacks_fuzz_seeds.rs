//! Writes the first inputs of the fuzz corpora: stacks of this very program, with the tables of small libraries.
//!
//! `cargo run -p tracesmith-stacks --example stacks_fuzz_seeds -- fuzz/corpus` (needs cc and objcopy)

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the panic is shown to the user of the example"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tracesmith_stacks::{Images, Walker, fuzz};

/// Ways to compile the same function: by the stack pointer, by the base pointer, with an aligned stack.
const WAYS: [(&str, &[&str]); 3] = [
    ("stack", &["-O2", "-fomit-frame-pointer"]),
    ("base", &["-O2", "-fno-omit-frame-pointer"]),
    ("aligned", &["-O2", "-mavx2", "-DALIGNED=64"]),
];
const CODE: &str = "#ifndef ALIGNED\n#define ALIGNED 8\n#endif\nint g(int *);\n\
int through(int n) { int a[16] __attribute__((aligned(ALIGNED))) = {n}; return g(a) + through(n - 1); }\n";

fn main() {
    let corpus = PathBuf::from(env::args().nth(1).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (words, low) = own_stack(20);
    fs::create_dir_all(corpus.join("stacks_walk")).unwrap();
    for (name, flags) in WAYS {
        let library = compile(folder.path(), flags);
        let [index, frames] = ["eh_frame_hdr", "eh_frame"].map(|name| section(&library, name));
        // Functions of so small a library begin a little behind 0x1000, its index is at 0x2000.
        let input = fuzz::recorded(&words, low, &index, &frames, 0xfc0);
        fs::write(corpus.join("stacks_walk").join(name), input).unwrap();
    }
    fs::create_dir_all(corpus.join("stacks_lines")).unwrap();
    // Entries of several bytes, and pairs of changes.
    let tables: [(&str, &[u8]); 2] = [
        (
            "locations",
            &[
                24, 0, 0, 0, 128, 0, 216, 4, 21, 144, 97, 145, 5, 128, 65, 132, 102, 136, 65,
            ],
        ),
        ("pairs", &[6, 0, 0, 0, 0, 1, 8, 1, 10, 255, 4, 128, 12, 2]),
    ];
    for (name, bytes) in tables {
        fs::write(corpus.join("stacks_lines").join(name), bytes).unwrap();
    }
}

/// The words of the stack, a kibibyte at most, from below so many calls.
#[inline(never)]
fn own_stack(calls: u32) -> (Vec<u64>, u64) {
    if calls > 0 {
        let found = own_stack(calls - 1);
        std::hint::black_box(calls);
        return found;
    }
    let (mut frames, mut places) = ([0; 64], [0; 64]);
    let walk = Walker::of_this_thread().walk_placed(&Images::list(None), &mut frames, &mut places);
    let low = places[0];
    let length = (places[walk.depth - 1] - low).min(1024) / 8;
    // SAFETY: between the stack pointers of two functions that have not returned.
    let read = |at: u64| unsafe { std::ptr::read_volatile((low + at * 8) as *const u64) };
    ((0..length).map(read).collect(), low)
}

fn compile(folder: &Path, flags: &[&str]) -> PathBuf {
    let (source, library) = (folder.join("code.c"), folder.join("code.so"));
    fs::write(&source, CODE).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-nostdlib", "-o"]);
    compiler.arg(&library).args(flags).arg(source);
    assert!(compiler.status().unwrap().success());
    library
}

fn section(library: &Path, name: &str) -> Vec<u8> {
    let out = library.with_extension(name);
    let mut copier = Command::new("objcopy");
    copier.args(["-O", "binary", "-j", &format!(".{name}")]);
    copier.arg(library).arg(&out);
    assert!(copier.status().unwrap().success());
    fs::read(out).unwrap()
}
