//! What a file looks like that is no trace: for the error, so that people see what they opened.

use super::Input;

/// How a kind of file begins, and what it is.
const MAGICS: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (
        b"PERFILE2",
        "a perf.data file; 'perf script' turns it into text that can be read",
    ),
    (b"\x50\xed\x55\xba", "a fatbin of CUDA code"),
    (
        b"QDSTRM",
        "an Nsight Systems stream; 'QdstrmImporter' makes a report of it",
    ),
];

/// Where a tar archive says that it is one.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// What a file looks like, in a few words.
pub(super) fn like(input: &Input) -> String {
    let content = like_content(input.head());
    match input.packed_with() {
        Some(packing) => format!("{packing} of {content}"),
        None => content,
    }
}

fn like_content(head: &[u8]) -> String {
    if head.is_empty() {
        return "an empty file".to_owned();
    }
    if head.starts_with(b"SQLite format 3\0") {
        return "an SQLite database without the tables of Nsight Systems or rocprofiler".to_owned();
    }
    if let Some((_, what)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).to_owned();
    }
    if head.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
        return "a tar archive".to_owned();
    }
    if head.iter().all(|byte| *byte == 0) {
        return "nothing but zeros".to_owned();
    }
    match text_of(head) {
        Some(text) => like_text(text),
        None => "binary data of an unknown kind".to_owned(),
    }
}

/// The text of a head that may end within a letter; `None` for what is no text.
fn text_of(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_control =
        |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}');
    (!text.contains(is_control)).then_some(text)
}

fn like_text(text: &str) -> String {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let lower: String = start.chars().take(64).collect::<String>().to_ascii_lowercase();
    let what = if lower.starts_with('{') {
        match first_key(start) {
            Some(key) => return format!("JSON without \"traceEvents\" (its first key is \"{key}\")"),
            None => "JSON without \"traceEvents\"",
        }
    } else if lower.starts_with('[') {
        "a JSON list without trace events"
    } else if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        "an HTML page"
    } else if lower.starts_with('<') {
        "XML"
    } else if lower.starts_with("#!") {
        "a script"
    } else if is_csv(start) {
        "a CSV table without the columns of a trace"
    } else if start.is_empty() {
        "blank text"
    } else {
        "text"
    };
    what.to_owned()
}

/// The first key of a JSON object, if it is short enough to show.
fn first_key(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('{')?.trim_start().strip_prefix('"')?;
    let (key, _) = rest.split_once('"')?;
    (key.len() <= 40 && !key.contains(char::is_control)).then_some(key)
}

/// Whether two lines have the same number of commas, and some.
fn is_csv(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let commas = |line: &str| line.matches(',').count();
    match (lines.next().map(commas), lines.next().map(commas)) {
        (Some(first), Some(second)) => first > 0 && first == second,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_what_it_looks_like() {
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let cases: [(&[u8], &str); 14] = [
            (b"", "an empty file"),
            (&[0; 100], "nothing but zeros"),
            (b"\x7fELF\x02\x01", "an ELF program or library"),
            (b"PK\x03\x04", "a ZIP archive"),
            (&tar, "a tar archive"),
            (
                b"SQLite format 3\0...",
                "an SQLite database without the tables of Nsight Systems or rocprofiler",
            ),
            (
                b"{\"name\": 1}",
                "JSON without \"traceEvents\" (its first key is \"name\")",
            ),
            (b"[1, 2]", "a JSON list without trace events"),
            (b"<!DOCTYPE html><p>", "an HTML page"),
            (b"<?xml version=\"1.0\"?>", "XML"),
            (b"a,b\n1,2\n", "a CSV table without the columns of a trace"),
            (b"#!/bin/sh\necho", "a script"),
            (b"import torch\n", "text"),
            (b"\x01\x02\xff\xfe", "binary data of an unknown kind"),
        ];
        for (bytes, what) in cases {
            let input = Input::from_bytes("file", bytes.to_vec()).expect("it is in memory");
            assert_eq!(like(&input), what);
        }
    }

    #[test]
    fn packed_files_are_looked_into() {
        use std::io::Write;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"hello\n").expect("memory takes all");
        let bytes = packed.finish().expect("memory takes all");
        let input = Input::from_bytes("file", bytes).expect("it is in memory");
        assert_eq!(like(&input), "gzip of text");
    }

    #[test]
    fn text_that_is_cut_within_a_letter_is_text() {
        let mut bytes = "ab\u{e4}".as_bytes().to_vec();
        bytes.pop();
        assert_eq!(like_content(&bytes), "text");
    }
}
