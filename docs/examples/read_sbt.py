#!/usr/bin/env python3
"""Prints the rows of an SBT trace as JSON lines: read_sbt.py trace.sbt

It follows docs/reference/format.md and uses nothing of the project, to show that the page is enough. It needs Python 3.9 and the
package zstandard. It is made to be read, not to be fast.

A line holds the row's table, its number, the clock of its times if they have one, and its columns. A column that is
called like one of the former gets an underscore behind its name. Strings are shown as text, all other values as
numbers, byte strings as their lengths. Numbers that JSON does not have are the texts "NaN", "Infinity" and "-Infinity".
A string that was lost is null.

Names of tables and columns come from the file's own schema. What cannot be read is reported on stderr, and everything
else is printed. The exit status is 2 when the file is no trace at all.
"""

import json
import math
import struct
import sys
from collections import namedtuple

import zstandard

MAGIC = b"\x89SBT\r\n\x1a\n"
SYNC = b"SBTB"
HEADER_BYTES = 64
NEWEST_MAJOR = 1

MAX_BLOCK_BYTES = 64 << 20
MAX_BLOCK_ROWS = 262_144
MAX_COLUMNS = 1024
MAX_REFERENCES = 16
MAX_CHAIN = 4

SCHEMA, STRINGS, INDEX, END = 2, 3, 65534, 65535

U8, U16, U32, U64, I32, I64, F64, BOOL, BLOB, GROUP_INDEX = range(1, 11)
UNSIGNED = {U8: 8, U16: 16, U32: 32, U64: 64, BOOL: 1}
SIGNED = {I32: 32, I64: 64}
PLAIN, DELTA, AFTER, XOR = range(4)
CONSTANT, PACKED, PLANES, BLOB_LAYOUT = range(4)
UNCOMPRESSED, ZSTD = range(2)

MEANING_STRING = 2
MEANING_ORDINAL = 21
FRAME = 128
U64_MASK = (1 << 64) - 1


class NotATrace(Exception):
    """The file cannot be read at all."""


class Damage(Exception):
    """A part of the file cannot be read."""


# ---------------------------------------------------------------------------------------------- ground rules


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def unfold(number):
    """The signed number, modulo 2**64."""
    return (number >> 1 ^ -(number & 1)) & U64_MASK


def as_signed(number):
    return number - (1 << 64) if number >> 63 else number


class Bytes:
    """Bytes that are taken from the front."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        if length > self.left():
            raise Damage("bytes are missing")
        self.at += length
        return self.data[self.at - length : self.at]

    def varint(self, most=U64_MASK):
        value = 0
        for place in range(10):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if value > most:
                    raise Damage("a number is too large")
                return value
        raise Damage("a number is too long")


# --------------------------------------------------------------------------------------------------- headers

FileHeader = namedtuple("FileHeader", "major minor metadata_offset index_offset length id")

BlockHeader = namedtuple(
    "BlockHeader",
    "kind codec payload_length unpacked_length first_time last_time base rows clock sequence payload_crc",
)


def file_header(data):
    """None when it is damaged."""
    magic, major, minor, _, metadata, index, length, trace_id, _, crc = struct.unpack("<8sHHIQQQ16sII", data)
    if magic != MAGIC or crc != crc32c(data[:60]):
        return None
    return FileHeader(major, minor, metadata, index, length, trace_id)


def within_limits(header):
    return (
        header.payload_length <= MAX_BLOCK_BYTES
        and header.unpacked_length <= MAX_BLOCK_BYTES
        and (header.rows <= MAX_BLOCK_ROWS or header.kind == END)
    )


def is_block_header(data):
    return data[:4] == SYNC and struct.unpack("<I", data[60:64]) == (crc32c(data[:60]),)


def block_header(data):
    """None when it is none, or damaged, or breaks a limit."""
    if len(data) < HEADER_BYTES or not is_block_header(data):
        return None
    _, kind, codec, _, payload, unpacked, first, last, base, rows, clock, sequence, payload_crc, _, _ = (
        struct.unpack("<4sHBBIIQQQIIIIII", data)
    )
    header = BlockHeader(kind, codec, payload, unpacked, first, last, base, rows, clock, sequence, payload_crc)
    return header if within_limits(header) else None


# --------------------------------------------------------------------------------------------------- payload

Entry = namedtuple(
    "Entry", "id group column_type transform layout compression reference rows raw_length stored"
)


def directory(payload):
    """The columns of a payload by their ids."""
    source = Bytes(payload)
    entries = []
    for _ in range(source.varint(MAX_COLUMNS)):
        column, group = source.varint(0xFFFF), source.varint(0xFFFF)
        column_type, transform, layout, compression = source.take(4)
        if not U8 <= column_type <= GROUP_INDEX or transform > XOR or layout > BLOB_LAYOUT or compression > ZSTD:
            raise Damage(f"column {column} is stored in an unknown way")
        reference = source.varint(0xFFFF) if transform == AFTER else 0
        rows, raw_length, stored_length = (source.varint(0xFFFFFFFF) for _ in range(3))
        entries.append(
            Entry(
                column, group, column_type, transform, layout, compression, reference, rows, raw_length, stored_length
            )
        )
    if len({entry.reference for entry in entries if entry.transform == AFTER}) > MAX_REFERENCES:
        raise Damage("too many columns are referred to")
    columns = {}
    for entry in entries:
        columns.setdefault(entry.id, entry._replace(stored=source.take(entry.stored)))
    if source.left():
        raise Damage("bytes follow the last column")
    return columns


def raw_bytes(entry, most):
    if entry.raw_length > most:
        raise Damage(f"column {entry.id} claims too many bytes")
    if entry.compression == UNCOMPRESSED:
        raw = entry.stored
    else:
        try:
            stated = zstandard.get_frame_parameters(entry.stored).content_size
            if stated not in (entry.raw_length, zstandard.CONTENTSIZE_UNKNOWN):
                raise Damage(f"column {entry.id} has another length than it states")
            raw = zstandard.ZstdDecompressor().decompress(entry.stored, max_output_size=entry.raw_length)
        except zstandard.ZstdError as error:
            raise Damage(f"column {entry.id}: {error}") from error
    if len(raw) != entry.raw_length:
        raise Damage(f"column {entry.id} has another length than it states")
    return raw


def most_packed_bytes(count):
    return 19 * count + 2


def packed_numbers(source, count):
    numbers = []
    while len(numbers) < count:
        size = min(FRAME, count - len(numbers))
        width, exceptions = source.take(2)
        if width > 64 or exceptions > size or (width == 64 and exceptions):
            raise Damage("a frame is malformed")
        positions = source.take(exceptions)
        highs = [source.varint() for _ in range(exceptions)]
        bits = int.from_bytes(source.take((size * width + 7) // 8), "little")
        mask = (1 << width) - 1
        frame = [bits >> row * width & mask for row in range(size)]
        for position, high in zip(positions, highs):
            if position >= size or high << width > U64_MASK:
                raise Damage("an exception is malformed")
            frame[position] |= high << width
        numbers += frame
    return numbers


def laid_out_numbers(entry):
    rows = entry.rows
    if entry.layout == CONSTANT:
        if entry.compression != UNCOMPRESSED:
            raise Damage(f"column {entry.id}: a constant is never compressed")
        source = Bytes(entry.stored)
        numbers = [source.varint()] * rows
    elif entry.layout == PACKED:
        source = Bytes(raw_bytes(entry, most_packed_bytes(rows)))
        numbers = packed_numbers(source, rows)
    elif entry.layout == PLANES:
        source = Bytes(raw_bytes(entry, 8 * rows))
        planes = [source.take(rows) for _ in range(entry.raw_length // rows)] if rows else []
        numbers = [0] * rows
        for place, plane in enumerate(planes):
            numbers = [number | byte << 8 * place for number, byte in zip(numbers, plane)]
    else:
        raise Damage(f"column {entry.id} holds byte strings")
    if source.left():
        raise Damage(f"column {entry.id} has bytes left over")
    return numbers


class Payload:
    """The columns of one block."""

    def __init__(self, header, data):
        self.rows = header.rows
        self.most_blob_bytes = header.unpacked_length + most_packed_bytes(header.rows)
        self.columns = directory(data)
        self.known_lanes = {}

    def lanes(self, column, rows, steps=0):
        entry = self.columns.get(column)
        if entry is None:
            return [0] * rows
        if entry.rows != rows:
            raise Damage(f"column {column} has another number of rows")
        if column in self.known_lanes:
            return self.known_lanes[column]
        if steps > MAX_CHAIN:
            raise Damage("columns refer to each other in a circle")
        numbers = laid_out_numbers(entry)
        before = 0
        if entry.transform == DELTA:
            for row, number in enumerate(numbers):
                before = numbers[row] = (before + unfold(number)) & U64_MASK
        elif entry.transform == XOR:
            for row, number in enumerate(numbers):
                before = numbers[row] = before ^ number
        elif entry.transform == AFTER:
            others = self.lanes(entry.reference, rows, steps + 1)
            numbers = [(other + unfold(number)) & U64_MASK for other, number in zip(others, numbers)]
        self.known_lanes[column] = numbers
        return numbers

    def group_index(self, column):
        """Which of the group's values each row has, and how many values there are."""
        entry = self.columns.get(column)
        if entry is None:
            return [0] * self.rows, 1
        if entry.column_type != GROUP_INDEX:
            raise Damage(f"column {column} is not the index of a group")
        index = self.lanes(column, self.rows)
        distinct = max(index, default=-1) + 1
        if distinct > self.rows:
            raise Damage(f"column {column} points behind its group's values")
        return index, distinct

    def values(self, column, column_type, group=0):
        """The values of a column, one for each row, read as `column_type`."""
        index, rows = self.group_index(group) if group else (None, self.rows)
        entry = self.columns.get(column)
        if entry is not None and entry.group != group:
            raise Damage(f"column {column} is in another group")
        if column_type == BLOB:
            return self.byte_strings(column)
        stored_type = column_type if entry is None else entry.column_type
        values = typed(column, self.lanes(column, rows), stored_type, column_type)
        return [values[value] for value in index] if group else values

    def byte_strings(self, column):
        entry = self.columns.get(column)
        if entry is None:
            return [b""] * self.rows
        if entry.layout != BLOB_LAYOUT or entry.column_type != BLOB or entry.rows != self.rows:
            raise Damage(f"column {column} does not hold byte strings")
        source = Bytes(raw_bytes(entry, self.most_blob_bytes))
        strings = [source.take(length) for length in packed_numbers(source, self.rows)]
        if source.left():
            raise Damage(f"column {column}: its lengths do not add up to its bytes")
        return strings


def typed(column, lanes, stored_type, wanted_type):
    largest = max(lanes, default=0)
    if stored_type in UNSIGNED and wanted_type in UNSIGNED:
        fits, values = largest >> UNSIGNED[wanted_type] == 0, lanes
    elif stored_type in SIGNED and wanted_type in SIGNED:
        fits, values = largest >> SIGNED[wanted_type] == 0, [as_signed(unfold(lane)) for lane in lanes]
    elif stored_type == wanted_type == F64:
        fits, values = True, [struct.unpack("<d", struct.pack("<Q", lane))[0] for lane in lanes]
    else:
        raise Damage(f"column {column} is of another type")
    if not fits:
        raise Damage(f"column {column}: a value does not fit its type")
    return values


# ------------------------------------------------------------------------------------------------------ file

Block = namedtuple("Block", "offset header")

# Columns of the index: id, type and the field of the block header.
INDEX_COLUMNS = [
    (2, U16, "kind"),
    (12, U8, "codec"),
    (3, U32, "payload_length"),
    (4, U32, "unpacked_length"),
    (5, U64, "first_time"),
    (6, U64, "last_time"),
    (7, U64, "base"),
    (8, U32, "rows"),
    (9, U32, "clock"),
    (10, U32, "sequence"),
    (11, U32, "payload_crc"),
]
INDEX_OFFSET = 1


class Trace:
    """An open file: its blocks, and what of it is damaged."""

    def __init__(self, data):
        self.data = data
        self.damage = []
        self.blocks = []
        header = self.open_header()
        end = header.length or len(data)
        if end > len(data):
            self.report(len(data), f"the file is cut: {end - len(data)} bytes are missing")
            self.scan()
        elif self.read_index(end):
            if end < len(data):
                self.report(end, f"{len(data) - end} bytes follow the end of the trace")
        else:
            self.scan()

    def report(self, offset, what):
        self.damage.append(f"at byte {offset}: {what}")

    def header_at(self, offset):
        return block_header(self.data[offset : offset + HEADER_BYTES])

    def open_header(self):
        data = self.data[:HEADER_BYTES]
        if not data:
            raise NotATrace("the file is empty")
        if len(data) < HEADER_BYTES:
            cut = data.startswith(MAGIC[: len(data)])
            raise NotATrace("the file is cut within its header" if cut else "not an SBT trace")
        header = file_header(data)
        if header is None:
            if not is_block_header(self.data[HEADER_BYTES : 2 * HEADER_BYTES].ljust(HEADER_BYTES)):
                raise NotATrace("not an SBT trace")
            self.report(0, "the file header is damaged")
            return FileHeader(1, 0, 0, 0, 0, bytes(16))
        if header.major > NEWEST_MAJOR:
            raise NotATrace(f"version {header.major}.{header.minor} is newer than this reader")
        return header

    def read_index(self, end):
        """Whether there is a good one."""
        end_marker = end - HEADER_BYTES
        if end_marker < HEADER_BYTES:
            return False
        marker = self.header_at(end_marker)
        if marker is None or marker.kind != END or marker.base > end_marker:
            return False
        blocks, described, at = [], HEADER_BYTES, marker.base
        try:
            while at != end_marker:
                header = self.header_at(at)
                if header is None or header.kind != INDEX:
                    raise Damage("a block of it is missing")
                payload = self.payload(Block(at, header))
                offsets = payload.values(INDEX_OFFSET, U64)
                columns = [payload.values(column, column_type) for column, column_type, _ in INDEX_COLUMNS]
                names = [name for _, _, name in INDEX_COLUMNS]
                for offset, row in zip(offsets, zip(*columns)):
                    block = Block(offset, BlockHeader(**dict(zip(names, row))))
                    if offset != described or not within_limits(block.header):
                        raise Damage("it describes other blocks than the file has")
                    described += HEADER_BYTES + block.header.payload_length
                    if described > marker.base:
                        raise Damage("it describes more blocks than the file has")
                    blocks.append(block)
                at += HEADER_BYTES + header.payload_length
                if at > end_marker:
                    raise Damage("it goes beyond the end marker")
            if described != marker.base:
                raise Damage("it describes fewer blocks than the file has")
        except Damage as damage:
            self.report(marker.base, f"the index cannot be read: {damage}")
            return False
        self.blocks = blocks
        return True

    def scan(self):
        at, length, finished = HEADER_BYTES, len(self.data), False
        while at < length:
            if length - at < HEADER_BYTES:
                self.report(at, f"{length - at} bytes are cut off")
                break
            header = self.header_at(at)
            if header is None:
                following = self.next_block(at + 1)
                self.report(at, f"{following - at} bytes are damaged")
                at = following
                continue
            behind = at + HEADER_BYTES + header.payload_length
            if behind > length:
                self.report(at, f"the file ends within block {header.sequence}: {header.rows} rows are lost")
                break
            if header.kind == END:
                finished = True
            elif header.kind != INDEX:
                self.blocks.append(Block(at, header))
            at = behind
        if not finished:
            self.report(length, "the file was not finished")

    def next_block(self, at):
        """Where the next good header is; the file's end when there is none."""
        while True:
            at = self.data.find(SYNC, at)
            if at < 0:
                return len(self.data)
            if self.header_at(at) is not None:
                return at
            at += 1

    def payload(self, block):
        """The payload of a block, after all checks."""
        header = block.header
        start = block.offset + HEADER_BYTES
        data = self.data[start : start + header.payload_length]
        if self.header_at(block.offset) != header:
            raise Damage("the header is damaged, or not what the index says")
        if len(data) != header.payload_length or crc32c(data) != header.payload_crc:
            raise Damage("the payload does not match its checksum")
        if header.codec != 0:
            raise Damage(f"codec {header.codec} is not known")
        return Payload(header, data)


# ------------------------------------------------------------------------------------------------------ rows

Column = namedtuple("Column", "id group name column_type meaning")


def columns_of(trace, kind, columns):
    """Blocks of a kind and columns of them. A block that cannot be read is reported when its rows are printed."""
    for block in trace.blocks:
        if block.header.kind == kind:
            try:
                payload = trace.payload(block)
                yield block, [payload.values(*column) for column in columns]
            except Damage:
                continue


def read_strings(trace):
    """All strings by their ids."""
    strings = {0: ""}
    for block, (texts,) in columns_of(trace, STRINGS, [(1, BLOB)]):
        for row, text in enumerate(texts):
            strings[block.header.base + row + 1] = text.decode("utf-8", "replace")
    return strings


def read_schema(trace, strings):
    """Names of all tables by their kinds, and their columns."""
    names, tables = {}, {}
    schema = [(1, U16), (2, U32), (3, U16), (4, U16), (5, U32), (6, U8), (7, U8)]
    for _, columns in columns_of(trace, SCHEMA, schema):
        for kind, table, column, group, name, column_type, meaning in zip(*columns):
            names.setdefault(kind, strings.get(table, f"kind_{kind}"))
            described = Column(column, group, strings.get(name, f"column_{column}"), column_type, meaning)
            tables.setdefault(kind, {}).setdefault(column, described)
    return names, tables


def rows_of(trace, block, strings, names, schema):
    """The rows of a block, each as the columns' names and values."""
    header = block.header
    payload = trace.payload(block)
    columns = dict(schema.get(header.kind, {}))
    for entry in payload.columns.values():
        unnamed = Column(entry.id, entry.group, f"column_{entry.id}", entry.column_type, 0)
        columns.setdefault(entry.id, unnamed)
    shown, values = [], []
    for column in columns.values():
        if column.column_type == GROUP_INDEX:
            continue
        shown.append(column.name + "_" if column.name in ("table", "row", "clock") else column.name)
        column_values = payload.values(column.id, column.column_type, column.group)
        if column.column_type == BLOB:
            column_values = [len(value) for value in column_values]
        elif column.meaning == MEANING_STRING:
            column_values = [strings.get(value) for value in column_values]
        elif column.meaning == MEANING_ORDINAL:
            column_values = [value - 1 if value else None for value in column_values]
        elif column.column_type == F64:
            column_values = [json_float(value) for value in column_values]
        values.append(column_values)
    table = names.get(header.kind, f"kind_{header.kind}")
    for row in range(header.rows):
        line = {"table": table, "row": header.base + row}
        if header.clock:
            line["clock"] = header.clock
        line.update((name, column[row]) for name, column in zip(shown, values))
        yield line


def json_float(value):
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        trace = Trace(data)
    except NotATrace as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    strings = read_strings(trace)
    names, schema = read_schema(trace, strings)
    for block in trace.blocks:
        try:
            for row in rows_of(trace, block, strings, names, schema):
                print(json.dumps(row))
        except Damage as damage:
            trace.report(block.offset, f"block {block.header.sequence}: {damage}")
    for damage in trace.damage:
        print(f"{path}: {damage}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: read_sbt.py trace.sbt")
    sys.exit(main(sys.argv[1]))
