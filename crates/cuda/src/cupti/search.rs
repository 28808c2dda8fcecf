//! Where a libcupti may be.
//!
//! The first CUPTI of a process serves all its clients, so the copy that the
//! process holds already comes first (PyTorch brings its own; the newest of
//! several), then
//! `TRACESMITH_CUPTI_PATH`, then those that come with a toolkit, with pip's
//! packages, and on the loader's path; of these the newest that the driver can
//! serve.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::{
    error::Error,
    library::{self, Library},
};

/// The variable that names a libcupti, or the folder of one.
pub const PATH_VARIABLE: &str = "TRACESMITH_CUPTI_PATH";

/// The names that libcupti has had, newest first.
const NAMES: [&str; 2] = ["libcupti.so.13", "libcupti.so.12"];

/// A libcupti that was opened.
pub(super) struct OpenedCupti {
    pub(super) library: Library,
    pub(super) path: PathBuf,
}

/// Opens the first that there is.
pub(super) fn open() -> Result<OpenedCupti, Error> {
    let held = library::mapped("libcupti.so").into_iter().filter_map(|path| {
        let library = Library::loaded(&path)?;
        Some(OpenedCupti { library, path })
    });
    // Some programs bring two: the newest reads what the driver knows.
    if let Some(newest) = held.max_by_key(|found| version(&found.library)) {
        return Ok(newest);
    }
    let mut reason = "no such file".to_owned();
    for path in candidates() {
        match Library::open(&path) {
            Ok(library) => return Ok(OpenedCupti { library, path }),
            // The last reason is the loader's, for the plain name.
            Err(error) => reason = error,
        }
    }
    Err(Error::Missing {
        library: "libcupti",
        reason,
    })
}

/// What the library says of itself; 0 when it says nothing.
fn version(library: &Library) -> u32 {
    let Some(address) = library.address("cuptiGetVersion") else {
        return 0;
    };
    // SAFETY: CUPTI documents this function with this signature.
    let function = unsafe {
        std::mem::transmute::<*const std::ffi::c_void, unsafe extern "C" fn(*mut u32) -> u32>(
            address.as_ptr(),
        )
    };
    let mut version = 0;
    // SAFETY: writes one word.
    unsafe { function(&raw mut version) };
    version
}

/// All places, best first: files that exist, then plain names for the loader.
pub fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(named) = env::var_os(PATH_VARIABLE).map(PathBuf::from) {
        if named.is_dir() {
            found.extend(in_folder(&named));
        } else {
            found.push(named);
        }
    }
    for folder in folders() {
        found.extend(in_folder(&folder));
    }
    found.extend(NAMES.iter().map(PathBuf::from));
    found
}

fn in_folder(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let folder = folder.to_owned();
    NAMES
        .iter()
        .map(move |name| folder.join(name))
        .filter(|path| path.exists())
}

fn folders() -> Vec<PathBuf> {
    let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(env::var_os)
        .map(PathBuf::from)
        .collect();
    toolkits.push(PathBuf::from("/usr/local/cuda"));
    let mut versions: Vec<PathBuf> = entries(Path::new("/usr/local"))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("cuda-"))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    toolkits.append(&mut versions);
    let mut folders = Vec::new();
    for toolkit in toolkits {
        folders.push(toolkit.join("lib64"));
        folders.push(toolkit.join("extras/CUPTI/lib64"));
    }
    for packages in python_packages() {
        folders.push(packages.join("nvidia/cu13/lib"));
        folders.push(packages.join("nvidia/cuda_cupti/lib"));
    }
    folders
}

/// `site-packages` of the Python that this process is, or of the virtual
/// environment that is active.
fn python_packages() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = env::var_os("VIRTUAL_ENV")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    // A process that cannot be asked has no Python of interest.
    if let Ok(program) = env::current_exe() {
        prefixes.extend(program.parent().and_then(Path::parent).map(Path::to_owned));
    }
    prefixes
        .iter()
        .flat_map(|prefix| entries(&prefix.join("lib")).collect::<Vec<_>>())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("python3"))
        })
        .map(|path| path.join("site-packages"))
        .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    // A folder that cannot be read holds nothing for us.
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}
