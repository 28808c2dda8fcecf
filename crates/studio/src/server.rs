//! The server: its addresses, its key, and how it ends.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::access::Hosts;
use crate::answers::Answers;
use crate::browser::Browser;
use crate::connections;
use crate::error::Error;
use crate::events::Hub;
use crate::folder::StartFolder;
use crate::key::Key;
use crate::library::Library;
use crate::options::Options;
use crate::predictions::Predictions;
use crate::recorder::Recordings;
use crate::replay::Replays;
use crate::routes;
use crate::studio::Studio;
use crate::tabs::Tabs;
use crate::work::Work;

/// Threads of the runtime. They never wait: all work is on others.
const RUNTIME_THREADS: usize = 2;
/// Threads that may wait: more than there are places for work, since pages can be read from a folder.
const BLOCKING_THREADS: usize = 16;
/// Ports that are tried until one is free at both addresses of this machine.
const PORT_TRIES: usize = 16;
/// Time between two looks at what nobody has asked about for a while.
const FORGET_PERIOD: Duration = Duration::from_secs(10);
/// Ports that one user has for servers that run at the same time.
const USUAL_PORTS: u16 = 16;

/// A server that listens. Nothing is answered before it runs.
#[derive(Debug)]
pub struct Server {
    studio: Arc<Studio>,
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    idle_limit: Option<Duration>,
}

/// Why a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It got a signal, such as that of Ctrl-C.
    Signal,
    /// No page was open for a while.
    NoPages,
}

impl Server {
    /// Listens, and starts to read the files.
    pub fn bind(options: Options) -> Result<Self, Error> {
        let folder = StartFolder::new(&options.folder).map_err(|source| Error::Folder {
            path: options.folder.clone(),
            source,
        })?;
        let key = Key::random().map_err(|source| Error::Random { source })?;
        let listeners = match options.listen {
            Some(address) => vec![listen(SocketAddr::new(address, options.port))?],
            None => listen_as_usual(options.port, options.usual_port)?,
        };
        let addresses = listeners.iter().filter_map(|listener| listener.local_addr().ok());
        let addresses: Vec<SocketAddr> = addresses.collect();
        let hub = Hub::new();
        let tabs = Arc::new(Tabs::new());
        let library = Library::new(hub.clone(), Arc::clone(&tabs));
        for path in &options.files {
            library.open_named(path).map_err(|source| Error::File {
                path: path.clone(),
                source,
            })?;
        }
        let studio = Studio {
            key,
            hosts: Hosts::new(options.listen, &options.allowed_hosts),
            control: options.control,
            folder,
            library: Arc::new(library),
            predictions: Predictions::new(hub.clone()),
            recorder: options.recorder,
            recordings: Arc::new(Recordings::new(hub.clone())),
            hub,
            work: Work::new(),
            answers: Answers::default(),
            replays: Replays::new(options.replayer),
            tabs,
            pages: options.pages,
        };
        Ok(Server {
            studio: Arc::new(studio),
            listeners,
            addresses,
            idle_limit: options.idle_limit,
        })
    }

    /// The addresses that it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The address for the browser, with the key.
    pub fn url(&self) -> String {
        let address = self.addresses.first().copied();
        let address = address.unwrap_or_else(|| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0));
        // An address that stands for all is none that can be opened.
        let host = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let address = SocketAddr::new(host, address.port());
        format!("http://{address}/#key={}", self.studio.key.text())
    }

    /// Opens the user's browser.
    pub fn open_browser(&self) -> io::Result<()> {
        let Browser { opener } = Browser::open(&self.url())?;
        self.studio.tabs.keep_opener(opener);
        Ok(())
    }

    /// Answers until a signal comes, or until no page was open for the chosen time.
    pub fn run(self) -> Result<Ended, Error> {
        let start = |source| Error::Start { source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("studio")
            .enable_all()
            .build()
            .map_err(start)?;
        let studio = Arc::clone(&self.studio);
        let ended = runtime.block_on(self.serve()).map_err(start);
        studio.tabs.remove_opener();
        studio.replays.end_all();
        // Streams and analyses do not hold up the end.
        runtime.shutdown_background();
        ended
    }

    async fn serve(self) -> io::Result<Ended> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let router = routes::router(&self.studio);
        let places = Arc::new(Semaphore::new(connections::MOST));
        let mut tasks = tokio::task::JoinSet::new();
        for listener in self.listeners {
            tasks.spawn(connections::serve(listener, router.clone(), Arc::clone(&places)));
        }
        let tabs = Arc::clone(&self.studio.tabs);
        let forgetting = forget_unused(Arc::clone(&self.studio.library));
        tokio::select! {
            never = forgetting => match never {},
            _ = interrupt.recv() => Ok(Ended::Signal),
            _ = terminate.recv() => Ok(Ended::Signal),
            () = no_pages(&tabs, self.idle_limit) => Ok(Ended::NoPages),
            Some(failed) = tasks.join_next() => match failed {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) | Err(_) => Err(io::Error::other("a listener ended")),
            },
        }
    }
}

/// Forgets again and again what takes much memory and nobody has asked about for a while.
async fn forget_unused(library: Arc<Library>) -> Infallible {
    loop {
        tokio::time::sleep(FORGET_PERIOD).await;
        let library = Arc::clone(&library);
        // To free much memory takes a while. A panic has printed its message.
        let _ = tokio::task::spawn_blocking(move || library.forget_unused()).await;
    }
}

/// Waits until no page was open for some time.
async fn no_pages(tabs: &Tabs, limit: Option<Duration>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    loop {
        let Some(rest) = limit.checked_sub(tabs.idle()).filter(|rest| !rest.is_zero()) else {
            return;
        };
        tokio::time::sleep(rest).await;
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).map_err(|source| Error::Listen { address, source })
}

/// Listens on a port that was used before, if any port will do and one of those is free.
fn listen_as_usual(port: u16, usual: Option<u16>) -> Result<Vec<TcpListener>, Error> {
    let tries = usual
        .filter(|_| port == 0)
        .into_iter()
        .flat_map(|first| first..first.saturating_add(USUAL_PORTS));
    for port in tries {
        // Another program may have one of the two addresses: a page at `localhost` could reach it.
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port));
        match (first, second) {
            (Ok(first), Ok(second)) => return Ok(vec![first, second]),
            (Ok(first), Err(error)) if error.kind() != io::ErrorKind::AddrInUse => return Ok(vec![first]),
            _ => {}
        }
    }
    listen_here(port)
}

/// Listens on both addresses of this machine, at one port. Not every machine has the second one.
fn listen_here(port: u16) -> Result<Vec<TcpListener>, Error> {
    let mut last = None;
    for _ in 0..PORT_TRIES {
        let first = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?;
        let chosen = first.local_addr().map_or(port, |address| address.port());
        match TcpListener::bind((Ipv6Addr::LOCALHOST, chosen)) {
            Ok(second) => return Ok(vec![first, second]),
            // Somebody else has the port there. They could answer those who open `localhost`.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && port == 0 => last = Some(first),
            Err(_) => return Ok(vec![first]),
        }
    }
    Ok(last.into_iter().collect())
}
