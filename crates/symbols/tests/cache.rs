//! The cache gives the names that the files give, whatever happens to it.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol, SymbolKind};
use tracesmith_symbols::{Cache, File, Function, Resolver, Sources};

const LIMIT: u64 = 64 << 20;

/// Two libraries of the same source: with debug information, and with a symbol table only.
fn libraries(folder: &Path) -> Option<[PathBuf; 2]> {
    let source = folder.join("code.cpp");
    let functions = (0..700).map(|at| {
        format!("namespace ours {{ __attribute__((noinline)) int function_{at}(int n) {{ return n * {at} + n; }} }}\n")
    });
    fs::write(&source, functions.collect::<String>()).unwrap();
    let made = [("lines.so", "-g"), ("table.so", "-g0")].map(|(name, debug)| {
        let library = folder.join(name);
        let mut compiler = Command::new("c++");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wl,--build-id", debug, "-o"]);
        let done = compiler.arg(&library).arg(&source).status();
        done.is_ok_and(|status| status.success()).then_some(library)
    });
    match made {
        [Some(lines), Some(table)] => Some([lines, table]),
        _ => {
            tracesmith_skip::without("c++", "");
            None
        }
    }
}

fn file(path: &Path) -> File {
    let bytes = fs::read(path).unwrap();
    let parsed = object::File::parse(&*bytes).unwrap();
    let build_id = parsed.build_id().unwrap().unwrap_or_default();
    File {
        root: PathBuf::from("/"),
        path: path.to_owned(),
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Addresses in functions, between them, and outside of the code.
fn addresses(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let parsed = object::File::parse(&*bytes).unwrap();
    let mut addresses = vec![0, 1, 64, u64::MAX, u64::MAX / 2];
    for symbol in parsed
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text)
    {
        let (start, end) = (symbol.address(), symbol.address() + symbol.size());
        addresses.extend([start, start + 1, end.saturating_sub(1), end, end + 3]);
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn names(file: &File, addresses: &[u64], cache: Option<&Cache>) -> Vec<Vec<Function>> {
    let mut resolver = Resolver::new(Sources::default()).with_cache(cache.cloned());
    let names = addresses
        .iter()
        .map(|address| resolver.functions(file, *address))
        .collect();
    let report = resolver.report();
    assert_eq!(report.len(), 1);
    names
}

/// The entries of a cache.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(listed) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn names_are_the_same_with_and_without_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let Some(libraries) = libraries(folder.path()) else {
        return;
    };
    let cache_folder = folder.path().join("cache/symbols");
    let cache = Cache::new(cache_folder.clone(), LIMIT);
    for library in &libraries {
        let (file, addresses) = (file(library), addresses(library));
        let without = names(&file, &addresses, None);
        assert!(without.iter().filter(|functions| !functions.is_empty()).count() > 1400);
        let even: Vec<u64> = addresses.iter().copied().step_by(2).collect();
        let expected: Vec<_> = without.iter().step_by(2).cloned().collect();
        assert_eq!(names(&file, &even, Some(&cache)), expected, "the first time");
        assert_eq!(names(&file, &even, Some(&cache)), expected, "the second time");
        assert_eq!(
            names(&file, &addresses, Some(&cache)),
            without,
            "with addresses that are new"
        );
        assert_eq!(
            names(&file, &addresses, Some(&cache)),
            without,
            "all of them again"
        );
    }
    assert_eq!(entries(&cache_folder).len(), 2);
    let mode = fs::metadata(&cache_folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "others may not see what was recorded");
}

#[test]
fn a_cache_answers_without_reading_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(libraries) = libraries(folder.path()) else {
        return;
    };
    let cache = Cache::new(folder.path().join("cache"), LIMIT);
    for library in &libraries {
        let (file, addresses) = (file(library), addresses(library));
        let before = names(&file, &addresses, Some(&cache));
        // The same size and times, and nothing in it.
        let metadata = fs::metadata(library).unwrap();
        fs::write(library, vec![0; metadata.len() as usize]).unwrap();
        let opened = fs::File::options().write(true).open(library).unwrap();
        opened.set_modified(metadata.modified().unwrap()).unwrap();
        assert_eq!(names(&file, &addresses, Some(&cache)), before);
        // A file that has changed is looked at.
        opened.set_modified(std::time::SystemTime::now()).unwrap();
        let after = names(&file, &addresses, Some(&cache));
        assert!(after.iter().all(Vec::is_empty), "it has no names any more");
    }
}

#[test]
fn damaged_entries_are_ignored_and_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let Some(libraries) = libraries(folder.path()) else {
        return;
    };
    let cache_folder = folder.path().join("cache");
    let cache = Cache::new(cache_folder.clone(), LIMIT);
    for library in &libraries {
        let (file, addresses) = (file(library), addresses(library));
        let expected = names(&file, &addresses, Some(&cache));
        let entry = cache_folder.join(format!("{}.symbols", file.build_id));
        let whole = fs::read(&entry).unwrap();
        let places = (0..whole.len())
            .step_by(whole.len() / 40 + 1)
            .chain([whole.len() - 1]);
        for at in places {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x41;
            fs::write(&entry, &damaged).unwrap();
            assert_eq!(names(&file, &addresses, Some(&cache)), expected, "byte {at}");
            assert_eq!(fs::read(&entry).unwrap(), whole, "byte {at}: it is whole again");
        }
        for length in [0, 7, 19, 20, whole.len() / 2, whole.len() - 1] {
            fs::write(&entry, &whole[..length]).unwrap();
            assert_eq!(names(&file, &addresses, Some(&cache)), expected, "{length} bytes");
        }
    }
    // An entry of another file under this name is not believed.
    let [lines, table] = libraries.each_ref().map(|library| file(library));
    let path = |file: &File| cache_folder.join(format!("{}.symbols", file.build_id));
    fs::copy(path(&lines), path(&table)).unwrap();
    let addresses = addresses(&table.path);
    assert_eq!(
        names(&table, &addresses, Some(&cache)),
        names(&table, &addresses, None)
    );
}

#[test]
fn what_cannot_be_cached_is_named_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let Some([_, library]) = libraries(folder.path()) else {
        return;
    };
    let addresses = addresses(&library);
    let file = file(&library);
    let expected = names(&file, &addresses, None);
    // A file where the folder should be, and a folder that a file is in the way of.
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "").unwrap();
    for path in [
        blocked.clone(),
        blocked.join("below"),
        PathBuf::from("/proc/nowhere"),
    ] {
        let cache = Cache::new(path, LIMIT);
        for _ in 0..2 {
            assert_eq!(names(&file, &addresses, Some(&cache)), expected);
        }
    }
    // Others can write to it.
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(
        names(&file, &addresses, Some(&Cache::new(open.clone(), LIMIT))),
        expected
    );
    assert!(entries(&open).is_empty());
    // No build ID: nothing says which file it is.
    let anonymous = File {
        build_id: String::new(),
        ..file.clone()
    };
    let none = folder.path().join("none");
    assert_eq!(
        names(&anonymous, &addresses, Some(&Cache::new(none.clone(), LIMIT))).len(),
        addresses.len()
    );
    assert!(entries(&none).is_empty());
    // Too small for it.
    let small = folder.path().join("small");
    assert_eq!(
        names(&file, &addresses, Some(&Cache::new(small.clone(), 10))),
        expected
    );
    assert!(entries(&small).is_empty());
}

#[test]
fn entries_that_were_not_used_for_long_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(libraries) = libraries(folder.path()) else {
        return;
    };
    let cache_folder = folder.path().join("cache");
    let [first, second] = libraries.each_ref().map(|library| file(library));
    let roomy = Cache::new(cache_folder.clone(), LIMIT);
    let of_first = addresses(&first.path);
    names(&first, &of_first, Some(&roomy));
    let entry = entries(&cache_folder).remove(0);
    let used = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let opened = fs::File::options().write(true).open(&entry).unwrap();
    opened.set_modified(used).unwrap();
    // It is used again.
    names(&first, &of_first, Some(&roomy));
    assert!(fs::metadata(&entry).unwrap().modified().unwrap() > used);
    opened.set_modified(used).unwrap();
    // There is room for the second only.
    let length = fs::metadata(&entry).unwrap().len();
    let small = Cache::new(cache_folder.clone(), length);
    names(&second, &addresses(&second.path), Some(&small));
    let left = entries(&cache_folder);
    assert_eq!(left, [cache_folder.join(format!("{}.symbols", second.build_id))]);
}

#[test]
fn collectors_that_write_at_once_leave_whole_entries() {
    let folder = tempfile::tempdir().unwrap();
    let Some(libraries) = libraries(folder.path()) else {
        return;
    };
    let cache_folder = folder.path().join("cache");
    let cache = Cache::new(cache_folder.clone(), LIMIT);
    let library = file(&libraries[0]);
    let all = addresses(&library.path);
    let expected = names(&library, &all, None);
    std::thread::scope(|scope| {
        for part in 0..8 {
            let (cache, library, all) = (&cache, &library, &all);
            scope.spawn(move || {
                let some: Vec<u64> = all.iter().copied().skip(part).step_by(8).collect();
                names(library, &some, Some(cache));
            });
        }
    });
    assert_eq!(entries(&cache_folder).len(), 1, "no unfinished file is left");
    assert_eq!(names(&library, &all, Some(&cache)), expected);
}
