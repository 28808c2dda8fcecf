//! The pages: files that the program carries, or a folder while one works on them.
//!
//! They are no secret, so they need no key. A page imports its modules one from another; each level would cost a round trip,
//! which is long through `ssh -L`. So the first page names them all.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::payload::{Keep, Payload};
use crate::reply::Failure;
use crate::studio::Studio;

/// A file of the pages.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// All files as answers, packed once.
static PAYLOADS: LazyLock<Vec<(&str, Payload)>> = LazyLock::new(|| {
    let modules: Vec<&str> = ASSETS
        .iter()
        .map(|asset| asset.path)
        .filter(|path| is_module(path))
        .collect();
    let payload = |asset: &Asset| {
        let bytes = match asset.path {
            INDEX => with_modules(asset.bytes, &modules),
            _ => asset.bytes.to_vec(),
        };
        (asset.path, Payload::new(asset.content_type, bytes))
    };
    ASSETS.iter().map(payload).collect()
});

const INDEX: &str = "index.html";

/// Answers everything that is not below `/api`.
pub(crate) async fn asset(State(studio): State<Arc<Studio>>, request: Request) -> Response {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return Failure::new(StatusCode::METHOD_NOT_ALLOWED, "pages can only be read").into_response();
    }
    let path = match request.uri().path().trim_start_matches('/') {
        "" => INDEX,
        path => path,
    };
    let found = match studio.pages.clone() {
        None => PAYLOADS
            .iter()
            .find(|(known, _)| *known == path)
            .map(|(_, payload)| payload.clone()),
        Some(folder) => {
            let path = path.to_owned();
            let read = tokio::task::spawn_blocking(move || read(&folder, &path));
            read.await.ok().flatten()
        }
    };
    match found {
        Some(payload) => payload.response(request.headers(), Keep::No),
        None => Failure::missing("there is no such page").into_response(),
    }
}

fn is_module(path: &str) -> bool {
    path.ends_with(".js")
}

/// The first page, with all modules named in its head.
fn with_modules(page: &[u8], modules: &[&str]) -> Vec<u8> {
    let page = String::from_utf8_lossy(page);
    let links = modules
        .iter()
        .map(|path| format!("<link rel=\"modulepreload\" href=\"{path}\">\n"));
    let links: String = links.collect();
    match page.split_once("</head>") {
        Some((head, rest)) => format!("{head}{links}</head>{rest}").into_bytes(),
        None => page.into_owned().into_bytes(),
    }
}

/// A file of a folder.
fn read(folder: &Path, path: &str) -> Option<Payload> {
    let is_plain = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let root = folder.canonicalize().ok()?;
    let file = root.join(path).canonicalize().ok()?;
    if !is_plain || !file.starts_with(&root) {
        return None;
    }
    let content_type = match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => return None,
    };
    let bytes = fs::read(file).ok()?;
    if path != INDEX {
        return Some(Payload::new(content_type, bytes));
    }
    let mut modules = Vec::new();
    find_modules(&root, &root, &mut modules);
    modules.sort();
    let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
    Some(Payload::new(content_type, with_modules(&bytes, &modules)))
}

/// All modules below a folder, as addresses.
fn find_modules(root: &Path, folder: &Path, modules: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_test = path.file_name().is_some_and(|name| name == "test");
        if path.is_dir() && !is_test {
            find_modules(root, &path, modules);
        }
        let inside: Option<PathBuf> = path.strip_prefix(root).ok().map(Path::to_path_buf);
        let inside = inside.and_then(|path| path.to_str().map(str::to_owned));
        modules.extend(inside.filter(|path| is_module(path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_names_all_modules() {
        let page = with_modules(
            b"<html><head><title>x</title></head><body>",
            &["main.js", "core/api.js"],
        );
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("</title><link rel=\"modulepreload\" href=\"main.js\">"));
        assert!(page.contains("href=\"core/api.js\">\n</head><body>"), "{page}");
    }

    #[test]
    fn a_folder_gives_its_own_pages_only() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("ui");
        fs::create_dir_all(folder.join("core")).unwrap();
        fs::create_dir_all(folder.join("test")).unwrap();
        fs::write(outside.path().join("secret.js"), "x").unwrap();
        fs::write(folder.join("index.html"), "<head></head>").unwrap();
        fs::write(folder.join("core/api.js"), "x").unwrap();
        fs::write(folder.join("test/a.js"), "x").unwrap();
        fs::write(folder.join("notes.txt"), "x").unwrap();
        std::os::unix::fs::symlink("../secret.js", folder.join("link.js")).unwrap();
        assert!(read(&folder, "core/api.js").is_some());
        for wrong in [
            "../secret.js",
            "core/../../secret.js",
            "link.js",
            "notes.txt",
            "absent.js",
            "/etc/hosts",
            "core",
        ] {
            assert!(read(&folder, wrong).is_none(), "{wrong}");
        }
        let mut modules = Vec::new();
        find_modules(&folder, &folder, &mut modules);
        modules.sort();
        assert_eq!(modules, ["core/api.js", "link.js"]);
    }
}
