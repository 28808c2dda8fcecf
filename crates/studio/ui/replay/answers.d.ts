/** Lines of a replay, as `tracesmith replay --step --format json` writes them. Addresses are texts such as 0x7f00. */

export interface ReplayInfo {
  is_recording: boolean;
  can_look: boolean;
  can_run: boolean;
  state: 'none' | 'starting' | 'ready' | 'ended';
  mode: 'run' | 'look' | null;
  ready: Ready | null;
  error: string | null;
}

export interface Ready {
  event: 'ready';
  protocol: number;
  offline: string | null;
  process: number;
  calls: number;
  buffers: number;
  begin_bytes: number;
  end_bytes: number;
  recorded_gpu: string;
  recorded_on: string;
  is_from_elsewhere: boolean;
  obstacles?: string[];
  position: Position;
}

/** `place` counts calls: 0 is before the first one, `calls` is the end. */
export interface Position {
  place: number;
  calls: number;
  next: number | null;
  previous: number | null;
  before?: number | null;
  snapshots?: number;
  offline?: string;
  replaced?: { kernel: string; file: string; calls: number[] } | null;
}

export interface Progress {
  call: number;
  calls: number;
  steps: number;
  bytes: number;
}

export interface Call {
  number: number;
  place: number;
  kind: string;
  name: string;
  what: string;
  function: string;
  correlation: number;
  stream: string;
  grid: [number, number, number];
  block: [number, number, number];
  shared: number;
  destination: string;
  source: string;
  bytes: number;
  graph: number;
  reason: string;
  recorded_ns: number | null;
}

export interface Calls {
  total: number;
  calls: Call[];
}

export interface BufferEntry {
  address: string;
  bytes: number;
  memory: string;
  variable: string;
  role?: 'parameter' | 'destination' | 'source' | 'global';
  pointer?: string;
  offset?: number;
  argument?: number | null;
}

export interface Buffers {
  buffers: BufferEntry[];
}

export type Moment = 'now' | 'before' | 'begin' | 'end';

export type NumberType = 'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'u64' | 'i64' | 'f16' | 'bf16' | 'f32' | 'f64';

export interface Contents {
  address: string;
  bytes: number;
  at: Moment;
  hex: string;
  position: Position;
}

export interface Statistics {
  address: string;
  bytes: number;
  at: Moment;
  type: NumberType;
  elements: number;
  finite: number;
  nan: number;
  positive_infinity: number;
  negative_infinity: number;
  zero: number;
  min: number | null;
  max: number | null;
  mean: number | null;
  histogram: { from: number; to: number; count: number }[];
}

export interface Picture {
  address: string;
  at: Moment;
  type: NumberType;
  shape: [number, number];
  rows: number;
  columns: number;
  min: number | null;
  max: number | null;
  means: (number | null)[];
  not_finite: number[];
}

export interface Difference {
  type: NumberType;
  bytes: number;
  elements: number;
  different_bytes: number;
  different_elements: number;
  largest: number;
  ranges: [offset: number, bytes: number][];
  range_count: number;
  first: { offset: number; index: number; old: string; new: string }[];
}

export type BufferDifference = Difference & BufferEntry & { last_call?: number };

export interface Changes {
  call: number;
  buffers: BufferDifference[];
}

export interface EndComparison {
  same: boolean;
  buffer_count: number;
  bytes: number;
  buffers: BufferDifference[];
}

export interface Check {
  verdict: 'repeats' | 'does not repeat';
  runs?: number;
  calls?: number;
  command?: number | null;
  name?: string;
  cause?: string;
  buffer?: string | null;
  difference?: {
    address: string;
    bytes: number;
    offset: number;
    expected: number[];
    found: number[];
    count: number;
  } | null;
}

export interface ReplacedLaunch {
  command: number;
  name: string;
  recorded_ns: number | null;
  old_ns: number;
  new_ns: number;
  outcome: {
    verdict: string;
    reason?: string;
    buffers?: number;
    differences?: { address: string; bytes: number; offset: number; count: number }[];
  };
}

export interface Replaced {
  launches: ReplacedLaunch[];
}

/** An operation on the timeline. Calls of the recording have the same correlation. */
export interface ReplayPlace {
  kind: string;
  row: number;
  start: number;
  duration: number;
  shape: number;
  name: string;
}
