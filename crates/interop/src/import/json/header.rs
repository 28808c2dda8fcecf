//! What a file says of itself beside its events: devices, ranks, the base of its times, and anything else as metadata.

use tracesmith_format::Bytes;

use crate::error::Error;
use crate::import::json::number::{signed, unquoted, unsigned};
use crate::import::json::reading::Reading;
use crate::import::json::scan::{for_each_item, for_each_member};
use crate::import::json::text::text_of;
use crate::import::json::tracks::Tracks;

impl Reading<'_, '_, '_> {
    /// Takes over one key of the file's object.
    pub(super) fn fact(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        match key {
            "baseTimeNanoseconds" => {
                match signed(value) {
                    Some(base) => self.times.set_base(i128::from(base)),
                    None => self.counts.skip("base time that is no number", 1),
                }
                return Ok(());
            }
            "distributedInfo" => {
                self.distributed(value);
                let key = format!("{}distributed", self.prefix);
                return self.builder.metadata(&key, &String::from_utf8_lossy(value));
            }
            "deviceProperties" => self.devices(value)?,
            "tracesmith" => self.own_facts(value)?,
            "otherData" => members(value, |key, value| {
                self.is_own |= key == b"tool" && unquoted(value) == b"tracesmith";
            }),
            _ => {}
        }
        let key = format!("{}json.{key}", self.prefix);
        self.builder.metadata(&key, &String::from_utf8_lossy(value))
    }

    /// A key whose value is larger than metadata should be.
    pub(super) fn large_fact(&mut self, key: &str) {
        self.counts
            .skip(&format!("value of \"{key}\", which is too large"), 1);
    }

    fn distributed(&mut self, value: &[u8]) {
        let (mut rank, mut world_size) = (None, 0);
        members(value, |key, value| {
            let number = unsigned(value).and_then(|number| u32::try_from(number).ok());
            match key {
                b"rank" => rank = number,
                b"world_size" => world_size = number.unwrap_or(0),
                _ => {}
            }
        });
        self.rank = Some((rank, world_size));
    }

    /// What our own export says of the host, and of the processes of a file of several.
    fn own_facts(&mut self, value: &[u8]) -> Result<(), Error> {
        let (mut host, mut processes) = (None, None);
        members(value, |key, value| match key {
            b"host" => host = Some(text_of(value).into_owned()),
            b"processes" => processes = Some(value),
            _ => {}
        });
        if let Some(host) = host {
            let host = self.builder.host(&host)?;
            self.tracks.set_host(host);
        }
        for_each_item(processes.unwrap_or_default(), |process| {
            let (mut pid, mut rank, mut world_size) = (None, None, 0);
            members(process, |key, value| {
                let number = unsigned(value).and_then(|number| u32::try_from(number).ok());
                match key {
                    b"pid" => pid = signed(value),
                    b"rank" => rank = number,
                    b"world_size" => world_size = number.unwrap_or(0),
                    _ => {}
                }
            });
            if let Some(pid) = pid {
                let process = self.tracks.numbered(self.builder, pid);
                Tracks::rank(self.builder, process, rank, world_size);
            }
        });
        Ok(())
    }

    fn devices(&mut self, value: &[u8]) -> Result<(), Error> {
        let mut result = Ok(());
        for_each_item(value, |device| {
            if result.is_ok() {
                result = self.device_properties(device);
            }
        });
        result
    }

    fn device_properties(&mut self, properties: &[u8]) -> Result<(), Error> {
        let (mut id, mut name) = (None, None);
        members(properties, |key, value| match key {
            b"id" => id = unsigned(value),
            b"name" => name = Some(text_of(value).into_owned()),
            _ => {}
        });
        let Some(id) = id else { return Ok(()) };
        self.has_device_properties = true;
        let name = self.builder.string(&name.unwrap_or_default())?;
        let device = self.tracks.device(self.builder, id);
        let device = self.builder.device_mut(device);
        device.name = name;
        members(properties, |key, value| {
            let number = unsigned(value).unwrap_or(0);
            let small = u32::try_from(number).unwrap_or(u32::MAX);
            match key {
                b"totalGlobalMem" => device.memory = Bytes(number),
                b"computeMajor" => device.capability_major = small,
                b"computeMinor" => device.capability_minor = small,
                b"numSms" => device.multiprocessors = small,
                b"warpSize" => device.warp_size = small,
                b"maxThreadsPerMultiprocessor" => device.threads_per_multiprocessor = small,
                b"regsPerMultiprocessor" => device.registers_per_multiprocessor = small,
                b"sharedMemPerMultiprocessor" | b"maxSharedMemoryPerMultiProcessor" => {
                    device.shared_per_multiprocessor = Bytes(number);
                }
                b"sharedMemPerBlock" => device.shared_per_block = Bytes(number),
                _ => {}
            }
        });
        Ok(())
    }
}

/// Keys and values of an object; nothing of what is none.
fn members<'v>(value: &'v [u8], mut member: impl FnMut(&'v [u8], &'v [u8])) {
    if value.first() == Some(&b'{') {
        // The value was found to be whole: a broken member leaves those before it.
        let _ = for_each_member(value, 0, |key, item| {
            member(unquoted(key.of(value)), item.of(value))
        });
    }
}
