//! A terminal for a program: a pseudo-terminal, and what its screen shows.
//!
//! Nothing here sleeps: what a test waits for is waited for until it is on the screen.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A machine under load is slow; a program that hangs is slower.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program and its terminal.
pub struct Terminal {
    master: File,
    /// Kept open, so that what the program left of the terminal can be looked at.
    slave: File,
    child: Child,
    pub screen: Screen,
    /// All that the program wrote since the last keys, for programs that write lines.
    written: String,
}

impl Terminal {
    /// Starts a program in a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(OsStr::from_bytes(name.as_bytes()))
            .unwrap();
        set_size(&master, columns, rows);
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Terminal {
            master: File::from(master),
            slave,
            child,
            screen: Screen::new(columns, rows),
            written: String::new(),
        }
    }

    /// Types something, and reads until what the program has written since then is as wanted. Returns it.
    pub fn answer(&mut self, keys: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.written.clear();
        self.send(keys);
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.written) {
            assert!(
                self.read_until(until),
                "no answer to {keys:?} in:\n{}",
                self.written
            );
        }
        self.written.clone()
    }

    /// Reads until the screen is as wanted.
    pub fn wait_for(&mut self, what: &str, wanted: impl Fn(&Screen) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.screen) {
            assert!(
                self.read_until(until),
                "no {what} on the screen:\n{}",
                self.screen.text()
            );
        }
    }

    /// Types something.
    pub fn send(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the terminal another size, and says so as a terminal does.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        set_size(&self.master, columns, rows);
        self.screen = Screen {
            alternate: self.screen.alternate,
            ..Screen::new(columns, rows)
        };
        self.signal(rustix::process::Signal::WINCH);
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the program is stopped, and reads what it wrote before.
    pub fn wait_until_stopped(&mut self) {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let pid = WaitId::Pid(Pid::from_child(&self.child));
        let until = Instant::now() + PATIENCE;
        while waitid(pid.clone(), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG)
            .unwrap()
            .is_none()
        {
            assert!(
                Instant::now() < until,
                "it does not stop:\n{}",
                self.screen.text()
            );
            self.read_until(Instant::now() + Duration::from_millis(20));
        }
        while self.read_until(Instant::now()) {}
    }

    /// Waits for the program to end and reads what it still wrote.
    pub fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                while self.read_until(Instant::now()) {}
                return status;
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.screen.text());
            self.read_until(Instant::now() + Duration::from_millis(20));
        }
    }

    /// Whether lines are edited by the terminal and keys echoed, as a shell leaves it.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Reads what there is, or comes until then; false when nothing came.
    fn read_until(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut ends = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut ends, Some(&timeout)).unwrap() == 0 {
            return false;
        }
        let mut bytes = [0; 4096];
        let count = self.master.read(&mut bytes).unwrap();
        self.screen.take(&bytes[..count]);
        self.written.push_str(&String::from_utf8_lossy(&bytes[..count]));
        true
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that fails leaves nothing behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(master: impl std::os::fd::AsFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(master, size).unwrap();
}

/// What a terminal shows: as much of one as our program uses.
pub struct Screen {
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Whether it is the second screen, that programs take over.
    pub alternate: bool,
    pub cursor_shown: bool,
    rest: Vec<u8>,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Self {
        Screen {
            cells: vec![vec![' '; columns.into()]; rows.into()],
            row: 0,
            column: 0,
            alternate: false,
            cursor_shown: true,
            rest: Vec::new(),
        }
    }

    /// The lines of the screen.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.cells.iter().map(|line| line.iter().collect()).collect();
        lines.join("\n")
    }

    pub fn contains(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(length) = self.step() {
            self.rest.drain(..length);
        }
    }

    /// Does what the first bytes say and tells how many they were; `None` when they are not all there.
    fn step(&mut self) -> Option<usize> {
        match self.rest.first()? {
            0x1b => self.escape(),
            b'\r' => {
                self.column = 0;
                Some(1)
            }
            b'\n' => {
                self.row += 1;
                Some(1)
            }
            first => {
                let length = match first {
                    0..0x80 => 1,
                    0..0xe0 => 2,
                    0..0xf0 => 3,
                    _ => 4,
                };
                let bytes = self.rest.get(..length)?;
                let char = std::str::from_utf8(bytes).unwrap().chars().next().unwrap();
                if let Some(cell) = self
                    .cells
                    .get_mut(self.row)
                    .and_then(|line| line.get_mut(self.column))
                {
                    *cell = char;
                }
                self.column += 1;
                Some(length)
            }
        }
    }

    fn escape(&mut self) -> Option<usize> {
        if *self.rest.get(1)? != b'[' {
            return Some(2);
        }
        let end = self
            .rest
            .iter()
            .skip(2)
            .position(|byte| (0x40..0x7f).contains(byte))?
            + 2;
        let parameters = String::from_utf8_lossy(&self.rest[2..end]).into_owned();
        let mut numbers = parameters
            .split(';')
            .map(|number| number.parse::<usize>().unwrap_or(1));
        match (self.rest[end], parameters.as_str()) {
            (b'H', _) => {
                self.row = numbers.next().unwrap_or(1) - 1;
                self.column = numbers.next().unwrap_or(1) - 1;
            }
            (b'J', _) => self.cells.iter_mut().for_each(|line| line.fill(' ')),
            (b'h', "?1049") => self.alternate = true,
            (b'l', "?1049") => self.alternate = false,
            (b'h', "?25") => self.cursor_shown = true,
            (b'l', "?25") => self.cursor_shown = false,
            _ => {}
        }
        Some(end + 1)
    }
}
