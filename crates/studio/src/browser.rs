//! Opening the user's browser without showing the key to others.
//!
//! Everybody on a machine can read the command lines of all programs, so the browser gets the name of a file that only the
//! user can read. The file leads to the server, and is removed as soon as a page has the key.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempPath;

/// A browser that has been started.
#[derive(Debug)]
pub struct Browser {
    /// The file that leads to the server.
    pub(crate) opener: TempPath,
}

/// Whether there is a screen that a browser could be shown on.
pub fn has_display() -> bool {
    ["WAYLAND_DISPLAY", "DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

impl Browser {
    /// Starts the user's browser with an address.
    pub(crate) fn open(url: &str) -> io::Result<Self> {
        let opener = opener(url)?;
        let mut child = Command::new("xdg-open")
            .arg(&*opener)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // It ends when the browser has the file; nobody waits for that.
        std::thread::Builder::new()
            .name("studio-browser".to_owned())
            .spawn(move || child.wait())?;
        Ok(Browser { opener })
    }
}

/// A file that leads to an address, for its owner alone.
fn opener(url: &str) -> io::Result<TempPath> {
    let folder = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = folder
        .filter(|folder| folder.is_dir())
        .unwrap_or_else(env::temp_dir);
    let mut file = tempfile::Builder::new()
        .prefix("tracesmith-studio-")
        .suffix(".html")
        .tempfile_in(folder)?;
    writeln!(
        file,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>TraceSmith Studio</title>\n\
         <a href=\"{url}\">TraceSmith Studio</a>"
    )?;
    file.flush()?;
    Ok(file.into_temp_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_for_its_owner_alone_and_leads_to_the_server() {
        let file = opener("http://127.0.0.1:1/#key=abc").unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("url=http://127.0.0.1:1/#key=abc\""), "{text}");
    }
}
