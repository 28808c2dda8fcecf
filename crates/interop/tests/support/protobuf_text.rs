//! Perfetto traces as text, for snapshots: a decoder of its own, so that what is written is not read by what wrote it.
//!
//! The names are those of Perfetto's `perfetto_trace.proto`. What has no name here is shown by its number.

use std::collections::HashSet;

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    Double,
    Text,
    Message(&'static [(u64, &'static str, Kind)]),
}

use Kind::{Double, Message, Number, Text};

const CLOCK: Kind = Message(&[
    (1, "clock_id", Number),
    (2, "timestamp", Number),
    (3, "is_incremental", Number),
]);
const CLOCK_SNAPSHOT: Kind = Message(&[(1, "clocks", CLOCK), (2, "primary_trace_clock", Number)]);
const ANNOTATION: Kind = Message(&[
    (1, "name_iid", Number),
    (3, "uint_value", Number),
    (4, "int_value", Number),
    (5, "double_value", Double),
    (6, "string_value", Text),
    (7, "pointer_value", Number),
    (17, "string_value_iid", Number),
]);
const LEGACY_EVENT: Kind = Message(&[
    (2, "phase", Number),
    (6, "unscoped_id", Number),
    (12, "bind_to_enclosing", Number),
]);
const TRACK_EVENT: Kind = Message(&[
    (3, "category_iids", Number),
    (4, "debug_annotations", ANNOTATION),
    (6, "legacy_event", LEGACY_EVENT),
    (9, "type", Number),
    (10, "name_iid", Number),
    (11, "track_uuid", Number),
    (22, "categories", Text),
    (30, "counter_value", Number),
    (44, "double_counter_value", Double),
    (47, "flow_ids", Number),
    (56, "callstack_iid", Number),
    (
        3000,
        "gpu_correlation",
        Message(&[(1, "render_stage_submission_event_ids", Number)]),
    ),
]);
const INTERNED_STRING: Kind = Message(&[(1, "iid", Number), (2, "name", Text)]);
const INTERNED_DATA: Kind = Message(&[
    (1, "event_categories", INTERNED_STRING),
    (2, "event_names", INTERNED_STRING),
    (3, "debug_annotation_names", INTERNED_STRING),
    (5, "function_names", INTERNED_STRING),
    (
        6,
        "frames",
        Message(&[
            (1, "iid", Number),
            (2, "function_name_id", Number),
            (3, "mapping_id", Number),
            (4, "rel_pc", Number),
            (5, "source_path_iid", Number),
            (6, "line_number", Number),
        ]),
    ),
    (
        7,
        "callstacks",
        Message(&[(1, "iid", Number), (2, "frame_ids", Number)]),
    ),
    (16, "build_ids", INTERNED_STRING),
    (17, "mapping_paths", INTERNED_STRING),
    (18, "source_paths", INTERNED_STRING),
    (
        19,
        "mappings",
        Message(&[
            (1, "iid", Number),
            (2, "build_id", Number),
            (7, "path_string_ids", Number),
        ]),
    ),
    (
        23,
        "graphics_contexts",
        Message(&[(1, "iid", Number), (2, "pid", Number), (3, "api", Number)]),
    ),
    (
        24,
        "gpu_specifications",
        Message(&[(1, "iid", Number), (2, "name", Text), (4, "category", Number)]),
    ),
    (29, "debug_annotation_string_values", INTERNED_STRING),
    (
        1000,
        "compute_kernels",
        Message(&[(1, "iid", Number), (2, "name", Text), (3, "demangled_name", Text)]),
    ),
    (1001, "compute_arg_names", INTERNED_STRING),
]);
const DIMENSIONS: Kind = Message(&[(1, "x", Number), (2, "y", Number), (3, "z", Number)]);
const RENDER_STAGE: Kind = Message(&[
    (1, "event_id", Number),
    (2, "duration", Number),
    (5, "context", Number),
    (6, "extra_data", Message(&[(1, "name", Text), (2, "value", Text)])),
    (10, "submission_id", Number),
    (11, "gpu_id", Number),
    (13, "hw_queue_iid", Number),
    (14, "stage_iid", Number),
    (19, "kernel_iid", Number),
    (
        21,
        "launch",
        Message(&[
            (1, "grid_size", DIMENSIONS),
            (2, "workgroup_size", DIMENSIONS),
            (
                3,
                "args",
                Message(&[(1, "name_iid", Number), (4, "uint_value", Number)]),
            ),
        ]),
    ),
]);
const TRACK_DESCRIPTOR: Kind = Message(&[
    (1, "uuid", Number),
    (2, "name", Text),
    (
        3,
        "process",
        Message(&[
            (1, "pid", Number),
            (2, "cmdline", Text),
            (6, "process_name", Text),
        ]),
    ),
    (
        4,
        "thread",
        Message(&[(1, "pid", Number), (2, "tid", Number), (5, "thread_name", Text)]),
    ),
    (5, "parent_uuid", Number),
    (
        8,
        "counter",
        Message(&[(3, "unit", Number), (6, "unit_name", Text)]),
    ),
    (11, "child_ordering", Number),
    (12, "sibling_order_rank", Number),
    (14, "description", Text),
    (15, "sibling_merge_behavior", Number),
]);
const NAMED_TEXT: Kind = Message(&[(1, "name", Text), (2, "string_value", Text)]);
const PACKET: Kind = Message(&[
    (5, "chrome_events", Message(&[(2, "metadata", NAMED_TEXT)])),
    (6, "clock_snapshot", CLOCK_SNAPSHOT),
    (8, "timestamp", Number),
    (10, "trusted_packet_sequence_id", Number),
    (11, "track_event", TRACK_EVENT),
    (12, "interned_data", INTERNED_DATA),
    (13, "sequence_flags", Number),
    (
        45,
        "system_info",
        Message(&[
            (
                1,
                "utsname",
                Message(&[(1, "sysname", Text), (3, "release", Text)]),
            ),
            (8, "num_cpus", Number),
            (16, "system_ram_bytes", Number),
            (17, "machine_name", Text),
        ]),
    ),
    (53, "gpu_render_stage_event", RENDER_STAGE),
    (
        59,
        "trace_packet_defaults",
        Message(&[
            (11, "track_event_defaults", TRACK_EVENT),
            (
                12,
                "perf_sample_defaults",
                Message(&[(1, "timebase", Message(&[(10, "name", Text)]))]),
            ),
            (58, "timestamp_clock_id", Number),
        ]),
    ),
    (60, "track_descriptor", TRACK_DESCRIPTOR),
    (
        66,
        "perf_sample",
        Message(&[
            (2, "pid", Number),
            (3, "tid", Number),
            (4, "callstack_iid", Number),
        ]),
    ),
    (87, "first_packet_on_sequence", Number),
    (
        89,
        "trace_uuid",
        Message(&[(1, "msb", Number), (2, "lsb", Number)]),
    ),
    (
        126,
        "trace_attributes",
        Message(&[(
            1,
            "attribute",
            Message(&[(1, "key", Text), (3, "string_value", Text)]),
        )]),
    ),
    (
        128,
        "gpu_info",
        Message(&[(
            1,
            "gpus",
            Message(&[
                (1, "name", Text),
                (2, "vendor", Text),
                (4, "architecture", Text),
                (5, "uuid", Text),
                (7, "pci_bdf", Text),
            ]),
        )]),
    ),
]);
const TRACE: &[(u64, &str, Kind)] = &[(1, "packet", PACKET)];

/// Lines are broken where they would be longer.
const WIDTH: usize = 140;

/// The packets of a trace, each as text. Interned words that an earlier packet has listed are not listed again.
pub fn packets_of(trace: &[u8]) -> Vec<String> {
    let mut listed = HashSet::new();
    let mut packets = Vec::new();
    for mut packet in fields(trace, TRACE) {
        if let Value::Message(fields) = &mut packet.value {
            for field in fields {
                let text = field.in_one_line();
                if text.starts_with("interned_data") && text.len() > WIDTH && !listed.insert(text) {
                    field.value = Value::Plain("(as on another sequence)".to_owned());
                }
            }
        }
        let mut text = String::new();
        packet.put(0, &mut text);
        packets.push(text);
    }
    packets
}

struct Field {
    name: String,
    value: Value,
}

enum Value {
    Plain(String),
    Message(Vec<Field>),
}

impl Field {
    fn in_one_line(&self) -> String {
        match &self.value {
            Value::Plain(text) => format!("{}: {text}", self.name),
            Value::Message(fields) => {
                let fields: Vec<String> = fields.iter().map(Field::in_one_line).collect();
                format!("{} {{ {} }}", self.name, fields.join(" "))
            }
        }
    }

    fn put(&self, depth: usize, out: &mut String) {
        let margin = "  ".repeat(depth);
        let line = self.in_one_line();
        match &self.value {
            Value::Message(fields) if margin.len() + line.len() > WIDTH => {
                *out += &format!("{margin}{} {{\n", self.name);
                put_filled(fields, depth + 1, out);
                *out += &format!("{margin}}}\n");
            }
            _ => *out += &format!("{margin}{line}\n"),
        }
    }
}

/// Several short fields share a line.
fn put_filled(fields: &[Field], depth: usize, out: &mut String) {
    let margin = "  ".repeat(depth);
    let mut line = String::new();
    for field in fields {
        let text = field.in_one_line();
        if !line.is_empty() && margin.len() + line.len() + 1 + text.len() > WIDTH {
            *out += &format!("{margin}{}\n", std::mem::take(&mut line));
        }
        if margin.len() + text.len() > WIDTH {
            field.put(depth, out);
        } else {
            line += if line.is_empty() { "" } else { " " };
            line += &text;
        }
    }
    if !line.is_empty() {
        *out += &format!("{margin}{line}\n");
    }
}

fn fields(mut bytes: &[u8], names: &[(u64, &str, Kind)]) -> Vec<Field> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let known = names.iter().find(|(number, ..)| *number == tag >> 3);
        let name = known.map_or_else(|| (tag >> 3).to_string(), |(_, name, _)| (*name).to_owned());
        let kind = known.map(|(.., kind)| *kind);
        let value = match (tag & 7, kind) {
            (0, _) => Value::Plain(varint(&mut bytes).to_string()),
            (1, kind) => {
                let bits = u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap());
                Value::Plain(match kind {
                    Some(Double) => format!("{:?}", f64::from_bits(bits)),
                    _ => bits.to_string(),
                })
            }
            (2, kind) => {
                let length = varint(&mut bytes) as usize;
                let content = take(&mut bytes, length);
                match kind {
                    Some(Message(names)) => Value::Message(self::fields(content, names)),
                    _ => Value::Plain(format!("{:?}", String::from_utf8_lossy(content))),
                }
            }
            (wire, _) => panic!("wire type {wire}"),
        };
        fields.push(Field { name, value });
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for at in 0.. {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}
