//! What targets of the tests do, by name.

use std::{
    env, fs,
    os::unix::{fs::FileExt, process::CommandExt},
    path::PathBuf,
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracesmith_wire::{
    Capacity,
    control::{Control, Message, Settings, armed},
    handshake::{self, Listener, Purpose},
    record,
};

use super::{
    TASK,
    target::{self, LIMIT, Target, connect, push, receive},
};

/// Where a target states how far it has come.
pub const PROGRESS: &str = "TRACESMITH_TEST_PROGRESS";

/// Runs the task named `NAME` or `NAME:NUMBER`, if there is one.
pub fn run() {
    let Ok(task) = env::var(TASK) else { return };
    let (name, number) = task.split_once(':').unwrap_or((&task, "0"));
    let number: u32 = number.parse().unwrap();
    match name {
        "whole" => whole(number),
        "forever" => forever(),
        "children" => children(number),
        "garbage" => garbage(),
        "late-texts" => late_texts(),
        "markers" => markers(),
        "windows" => windows(),
        "flight" => flight(number),
        "flight-asks" => flight_asks(number),
        "flight-asks-beside" => flight_asks_beside(),
        "flight-beside-others" => flight_beside_others(),
        "exec" => exec(),
        "exec-other" => exec_other(),
        "fork" => fork(),
        "lingers" => lingers(),
        "stubborn" => stubborn(),
        "refuses" => refuses(),
        "odd-visitor" => odd_visitor(),
        "armed" => armed(),
        "stays-away" => {}
        other => panic!("no task {other}"),
    }
}

/// Kernels and their calls, in order to the end; ends with code 3.
fn whole(kernels: u32) {
    let mut target = Target::open(connect());
    target.define_all();
    for number in 0..kernels {
        target.call(number);
        target.kernel(number);
    }
    target.goodbye();
    drop(target);
    process::exit(3);
}

/// Kernels until it is killed. After each one it states how many it has pushed.
fn forever() {
    let progress = env::var_os(PROGRESS).map(|path| fs::File::create(path).unwrap());
    let mut target = Target::open(connect());
    target.define_all();
    let start = Instant::now();
    // A test that fails leaves nobody who would kill it.
    for number in (0..).take_while(|_| start.elapsed() < 3 * LIMIT) {
        target.kernel(number);
        if let Some(progress) = &progress {
            progress.write_all_at(&(number + 1).to_le_bytes(), 0).unwrap();
        }
        if number % 100 == 99 {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Starts others at once and is none itself.
fn children(number: u32) {
    let program = env::current_exe().unwrap();
    let children: Vec<_> = (0..number)
        .map(|rank| {
            Command::new(&program)
                .args(env::args_os().skip(1))
                .env(TASK, "whole:500")
                .env("RANK", rank.to_string())
                .env("WORLD_SIZE", number.to_string())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}

/// Records that make no sense, between others that do.
fn garbage() {
    use std::num::NonZeroU16;
    let mut target = Target::open(connect());
    target.define_all();
    let mut state = 7u64;
    for number in 0..1000u16 {
        target.kernel(u32::from(number));
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let noise: Vec<u8> = (0..state % 300).map(|at| (state >> (at % 57)) as u8).collect();
        // Kinds that mean something get payloads too short for them, others noise.
        let kind = NonZeroU16::new(1 + (state >> 40) as u16 % 60).unwrap();
        let payload = if kind.get() < 50 {
            &noise[..noise.len().min(3)]
        } else {
            &noise[..]
        };
        let ring = if number % 2 == 0 {
            &mut target.activity
        } else {
            &mut target.definitions
        };
        let _ = ring.push(tracesmith_wire::Kind::new(kind).into(), payload);
    }
    // Whole records whose numbers are nonsense.
    let all = |bytes: &mut [u8]| bytes.fill(0xff);
    let mut wild = record::Marker::default();
    all(record::IntoBytes::as_mut_bytes(&mut wild));
    push(&mut target.activity, &wild, b"\xff\xfe");
    let mut wild = record::Kernel::default();
    all(record::IntoBytes::as_mut_bytes(&mut wild));
    push(&mut target.activity, &wild, b"");
    let mut wild = record::Module::default();
    all(record::IntoBytes::as_mut_bytes(&mut wild));
    push(&mut target.definitions, &wild, b"");
    let mut wild = record::ClockPair::default();
    all(record::IntoBytes::as_mut_bytes(&mut wild));
    wild.device_clock = 5;
    push(&mut target.definitions, &wild, b"");
    target.goodbye();
}

/// Activity first, then what it refers to: as it happens when the activity's
/// ring is read between the two.
fn late_texts() {
    let mut target = Target::open(connect());
    target.device();
    for number in 0..2000u32 {
        let id = 100 + number;
        let mut kernel = target::kernel(number);
        kernel.name = id;
        target.text(id, &format!("kernel_{number}"));
        push(&mut target.activity, &kernel, b"");
        if number % 50 == 0 {
            thread::sleep(Duration::from_micros(200));
        }
    }
    let mut unknown = target::kernel(2000);
    unknown.name = 9_999_999;
    push(&mut target.activity, &unknown, b"");
    target.goodbye();
}

fn markers() {
    let mut target = Target::open(connect());
    target.define_all();
    target.define(
        &record::Category {
            domain: target::DOMAIN,
            category: 5,
        },
        b"data",
    );
    target.marker(record::POP, 0, "");
    target.marker(record::PUSH, 0, "outer");
    target.marker(record::PUSH, 0, "inner");
    target.marker(record::MARK, 0, "now");
    target.marker(record::POP, 0, "");
    target.marker(record::POP, 0, "");
    target.marker(record::START, 41, "free");
    target.marker(record::START, 42, "never ended");
    target.marker(record::END, 41, "");
    target.marker(record::PUSH, 0, "never popped");
    let mut with_category = target::marker(record::MARK, 0);
    with_category.category = 5;
    with_category.payload = 17;
    with_category.payload_kind = 1;
    push(&mut target.definitions, &with_category, b"loaded");
    let name = record::ThreadName {
        thread: process::id(),
        reserved: 0,
    };
    target.define(&name, b"trainer");
    // The range ends after the last marker that is told of.
    target.goodbye();
}

/// Records when it is told to, until it is told to stop.
fn windows() {
    let mut target = Target::open(connect());
    target.define_all();
    loop {
        target.kernel(1);
        match target.control.receive(Duration::from_millis(2)) {
            Ok(Some(Message::Close)) => break,
            Ok(other) => panic!("{other:?}"),
            Err(_) => {}
        }
    }
    let _control = target.close();
    // What comes after the window is nobody's business.
    thread::sleep(Duration::from_millis(100));
}

/// Far more than the flight recorder holds, then dies.
fn flight(kernels: u32) {
    let mut target = Target::open(connect());
    target.define_all();
    for number in 0..kernels {
        target.kernel(number);
    }
    process::abort();
}

/// As that, but asks for a dump, and then goes on to its ordinary end.
fn flight_asks(kernels: u32) {
    let mut target = Target::open(connect());
    target.define_all();
    for number in 0..kernels {
        target.kernel(number);
    }
    target.control.send(&Message::Dump, LIMIT).unwrap();
    let Message::Dumped(Ok(path)) = receive(&target.control) else {
        panic!("no dump");
    };
    assert!(PathBuf::from(path).exists());
    target.text(77, "defined later");
    let mut kernel = target::kernel(kernels);
    kernel.name = 77;
    push(&mut target.activity, &kernel, b"");
    target.goodbye();
}

/// Requests a dump once a file appears.
fn flight_asks_beside() {
    let folder = PathBuf::from(env::var_os(PROGRESS).unwrap());
    let mut target = Target::open(connect());
    target.define_all();
    fs::write(folder.join("open"), "").unwrap();
    target::until(|| folder.join("ask").exists());
    target.control.send(&Message::Dump, LIMIT).unwrap();
    let answer = receive(&target.control);
    assert!(matches!(answer, Message::Dumped(Ok(_))), "{answer:?}");
    target.goodbye();
}

/// Runs beside a target that has ended and one that requests a dump. The reply must go to the requester.
fn flight_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let start = |task: &str| {
        let mut other = Command::new(env::current_exe().unwrap());
        other.args(env::args_os().skip(1)).stdout(Stdio::null());
        other
            .env(TASK, task)
            .env(PROGRESS, folder.path())
            .spawn()
            .unwrap()
    };
    assert_eq!(start("whole:10").wait().unwrap().code(), Some(3));
    let mut asking = start("flight-asks-beside");
    target::until(|| folder.path().join("open").exists());
    let mut target = Target::open(connect());
    target.define_all();
    fs::write(folder.path().join("ask"), "").unwrap();
    assert_eq!(asking.wait().unwrap().code(), Some(0));
    let message = target.control.receive(Duration::from_millis(50));
    assert!(message.is_err(), "an answer for another: {message:?}");
    target.goodbye();
}

/// Becomes another program, which records as well.
fn exec() {
    let mut target = Target::open(connect());
    target.define_all();
    for number in 0..100 {
        target.kernel(number);
    }
    let error = Command::new(env::current_exe().unwrap())
        .args(env::args_os().skip(1))
        .env(TASK, "whole:50")
        .exec();
    panic!("{error}");
}

/// Becomes a program that does not record.
fn exec_other() {
    let mut target = Target::open(connect());
    target.define_all();
    target.kernel(0);
    panic!("{}", Command::new("sh").args(["-c", "sleep 0.5; exit 4"]).exec());
}

/// A child that does nothing but live on for a while, as one of `fork`.
fn fork() {
    let mut target = Target::open(connect());
    target.define_all();
    for number in 0..100 {
        target.kernel(number);
    }
    let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
    target.goodbye();
    drop(target);
    child.wait().unwrap();
    process::exit(0);
}

/// Leaves a process behind that records until it is told to stop.
fn lingers() {
    leave_behind(TASK, "windows");
}

/// Starts this program again, does not wait for it, and goes on for a while.
#[allow(clippy::zombie_processes, reason = "it is to outlive us")]
fn leave_behind(variable: &str, value: &str) {
    Command::new(env::current_exe().unwrap())
        .args(env::args_os().skip(1))
        .env(variable, value)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(400));
}

/// Never answers an order, and outlives its parent.
fn stubborn() {
    if env::var_os("TRACESMITH_TEST_CHILD").is_some() {
        let mut target = Target::open(connect());
        target.define_all();
        target.kernel(0);
        // As if it were stopped.
        thread::sleep(Duration::from_secs(8));
        process::exit(0);
    }
    leave_behind("TRACESMITH_TEST_CHILD", "1");
}

/// Cannot record.
fn refuses() {
    let control = connect();
    let Message::Open(_) = receive(&control) else {
        panic!("no order")
    };
    let reason = "no CUPTI here".to_owned();
    control.send(&Message::Failed(reason), LIMIT).unwrap();
}

/// Records, while a visitor of its own says nothing sensible.
fn odd_visitor() {
    let mut target = Target::open(connect());
    target.define_all();
    target.kernel(0);
    for purpose in [Purpose::Control, Purpose::Thread] {
        let connection = handshake::connect(
            &target.settings.collector,
            purpose,
            Capacity::MIN,
            Duration::from_millis(20),
        );
        drop(connection);
    }
    target.kernel(1);
    target.goodbye();
}

/// Waits for collectors, as an armed program does, and records for each of
/// them until it is told to stop. States how many windows there were.
fn armed() {
    let listener = armed::listen().unwrap();
    let mut windows = 0;
    loop {
        let visitor = match listener.accept(LIMIT) {
            Ok(visitor) => visitor,
            Err(tracesmith_wire::Error::TimedOut { .. }) => return,
            // Someone only looked who listens here.
            Err(_) => continue,
        };
        let mut control = visitor.into_control();
        while let Ok(Some(message)) = control.receive(LIMIT) {
            match message {
                Message::Open(settings) => {
                    windows += 1;
                    control = record_for(control, *settings, windows, &listener);
                }
                Message::Close => control.send(&Message::Done, LIMIT).unwrap(),
                Message::Dump => {
                    let answer = Message::Dumped(Err("no flight recorder runs for this process".to_owned()));
                    control.send(&answer, LIMIT).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn someone_waits(listener: &Listener) -> bool {
    let mut watched = [PollFd::new(listener, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    poll(&mut watched, Some(&limit)).unwrap() > 0
}

/// Kernels until the collector says close. Another visitor may ask for a dump.
fn record_for(control: Control, settings: Settings, window: u32, listener: &Listener) -> Control {
    let mut target = Target::open_with(control, settings);
    target.define_all();
    loop {
        target.kernel(window);
        if someone_waits(listener) {
            // From here on it has all the time that a real program gives it.
            let Ok(visitor) = listener.accept(LIMIT) else {
                continue;
            };
            let asker = visitor.into_control();
            if asker.receive(LIMIT).unwrap() == Some(Message::Dump) {
                target.control.send(&Message::Dump, LIMIT).unwrap();
                asker.send(&receive(&target.control), LIMIT).unwrap();
            }
        }
        match target.control.receive(Duration::from_millis(1)) {
            Ok(Some(Message::Close)) => return target.close(),
            Ok(Some(other)) => panic!("{other:?}"),
            Ok(None) => process::exit(0),
            Err(_) => {}
        }
    }
}
