//! `tracesmith studio`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use tracesmith_studio::{Control, Ended, Options, Recordable, Recorder, Replayer, Server, has_display};
use tracesmith_wire::control::armed;

use crate::args::{Format, StudioArgs};
use crate::exit::Exit;
use crate::output::Output;

/// A server that opened a browser ends this long after its last page.
const IDLE_LIMIT: Duration = Duration::from_secs(5 * 60);
/// A folder with the pages, for those who change them.
const PAGES: &str = "TRACESMITH_STUDIO_UI";

pub(crate) fn run(args: &StudioArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if output.format == Format::Csv {
        bail!("studio prints an address: --format csv has no use");
    }
    let opens_browser = !args.no_browser && has_display();
    let server = Server::bind(Options {
        files: args.files.clone(),
        folder: PathBuf::from("."),
        listen: args.listen,
        port: args.port,
        allowed_hosts: args.allow_host.clone(),
        control: match args.control {
            true => Control::Allowed,
            false => Control::Refused,
        },
        idle_limit: opens_browser.then_some(IDLE_LIMIT),
        replayer: Some(Replayer::new(env::current_exe().context("finding this program")?)),
        recorder: Some(Recorder {
            program: env::current_exe().context("finding this program")?,
            processes,
        }),
        pages: env::var_os(PAGES).map(PathBuf::from),
    })?;
    if let Some(address) = args.listen.filter(|address| !address.is_loopback()) {
        output.warning(&format!(
            "everyone who reaches {address} can try to connect, and traffic is not encrypted; 'ssh -L' is safer"
        ));
    }
    match output.format {
        Format::Json => output.json(&json!({ "url": server.url() }))?,
        Format::Table | Format::Csv => output.line(&server.url())?,
    }
    output.finish()?;
    if opens_browser {
        if let Err(error) = server.open_browser() {
            output.warning(&format!(
                "the browser could not be started ({error}); open the address yourself"
            ));
        }
    } else {
        show_way(&server, output);
    }
    output.note("Ctrl-C ends it");
    match server.run().context("serving pages")? {
        Ended::Signal => {}
        Ended::NoPages => output.note("ended: no page was open for 5 minutes"),
    }
    Ok(Exit::Done)
}

/// The processes that were started with the variables of `tracesmith env`, with their command lines.
fn processes() -> Vec<Recordable> {
    let armed = armed::waiting().into_iter();
    armed
        .map(|(pid, _)| {
            // A process of another container has no command line here.
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<_> = line
                .split(|byte| *byte == 0)
                .filter(|word| !word.is_empty())
                .map(String::from_utf8_lossy)
                .collect();
            Recordable {
                pid,
                command: words.join(" "),
            }
        })
        .collect()
}

/// Tells how to reach the server from another machine.
fn show_way(server: &Server, output: &mut Output) {
    let Some(port) = server.addresses().first().map(|address| address.port()) else {
        return;
    };
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    output.note(&format!(
        "from another machine: ssh -L {port}:127.0.0.1:{port} {name}, then open the same address there"
    ));
}
