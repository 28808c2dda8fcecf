/** The answers of the server, as they arrive. All times are ns after the origin of the trace. */

export interface TraceEntry {
  id: number;
  path: string;
  name: string;
  state: 'reading' | 'ready' | 'failed';
}

export interface Session {
  version: string;
  control: boolean;
  records: boolean;
  folder: string;
  traces: TraceEntry[];
}

export interface FileEntry {
  name: string;
  kind: 'folder' | 'trace' | 'file';
  bytes: number;
  modified: number;
}

export interface Files {
  path: string;
  parent: string | null;
  entries: FileEntry[];
}

export type TrackKind =
  | 'device'
  | 'idle'
  | 'stream'
  | 'waits'
  | 'markers'
  | 'host'
  | 'calls'
  | 'counter'
  | 'memory'
  | 'collective';

export interface Group {
  id: string;
  kind: 'device' | 'process' | 'counters';
  label: string;
  /** Of a process in a distributed job. */
  rank?: number;
  tracks: number[];
}

export interface Track {
  id: number;
  key: string;
  kind: TrackKind;
  label: string;
  group: string;
  first_row: number;
  rows: number;
  slices: number;
  categories: string[];
  unit?: string;
  min?: number;
  max?: number;
}

/** Of a file that its writer has not finished. Each generation has what the one before had, before `from_ns`. */
export interface Live {
  state: 'recording' | 'stopped';
  changes: { generation: string; from_ns: number }[];
}

export interface Layout {
  generation: string;
  state: 'reading' | 'ready' | 'failed';
  progress: number;
  error?: string;
  /** The trace that this is a prediction of. */
  predicted_of?: number;
  origin_ns: string;
  span_ns: number;
  /** From the first to the last work of a GPU. */
  work?: [from: number, to: number];
  name: string;
  path: string;
  bytes: number;
  health: { good: boolean; sentences: string[] };
  metadata: Record<string, unknown>;
  idle: 'pending' | 'ready' | 'none';
  live?: Live;
  groups: Group[];
  tracks: Track[];
}

/** Name, short name, kind, number of the category within the kind of track. */
export type Shape = [name: string, shortName: string, kind: string, category: number];

export interface Slice {
  row: number;
  start: number;
  duration: number;
  shape: number;
}

export interface NamedSlice {
  row: number;
  start: number;
  duration: number;
  name: string;
}

export interface Frame {
  kind: string;
  function: string;
  file: string | null;
  line: number | null;
  image: string | null;
}

export interface Stack {
  frames: Frame[];
  end: string | null;
}

export interface Runs {
  count: number;
  total_ns: number;
  mean_ns: number;
  min_ns: number;
  p50_ns: number;
  p95_ns: number;
  max_ns: number;
  bins: { from_ns: number; to_ns: number; count: number }[];
}

export interface EventDetail {
  row: number;
  start: number;
  duration: number;
  name: string;
  short_name: string;
  kind: string;
  table: string | null;
  cause?: string;
  fields: [label: string, value: string | number | boolean][];
  launch: (NamedSlice & { thread: string }) | null;
  ops: NamedSlice[];
  stack: Stack | null;
  launch_stack?: Stack | null;
  forward?: { name: string; stack: Stack | null } | null;
  waited_for: (NamedSlice & { why: string })[];
  waited_by: (NamedSlice & { why: string })[];
  runs: Runs | null;
}

/** An event in the measured and in the predicted timeline. */
export interface Moved {
  measured: Slice & { name: string };
  predicted: Slice & { name: string };
}

/** A note about a time, and about a row or an event where there is one. */
export interface Note {
  from_ns: number;
  to_ns: number;
  track?: string;
  lane?: number;
  event?: string;
  text: string;
}

/** The notes of a trace, and the file that keeps them. */
export interface Notes {
  path: string | null;
  can_save: boolean;
  stamp: string | null;
  fits: boolean;
  problem?: string;
  document: { format: string; version: number; trace: string; origin_ns: string; notes: Note[] };
}

export interface Source {
  file: string;
  first: number;
  lines: string[];
  line: number;
}

export interface SearchResults {
  total: number;
  truncated: boolean;
  results: (NamedSlice & { shape: number; where: string })[];
  shapes: { shape: number; count: number; total_ns: number }[];
}

export interface AreaTotals {
  busy_ns: number;
  rows: number;
  shapes: { shape: number; name: string; count: number; busy_ns: number }[];
}

export interface Table {
  columns: string[];
  rows: unknown[][];
  total: number;
}

export interface SqlResult {
  columns: { name: string; type: string }[];
  rows: unknown[][];
  truncated: boolean;
  ms: number;
}

export interface FlameNode {
  name: string;
  kind: string;
  value: number;
  self: number;
  children?: FlameNode[];
}

export interface Flame {
  total: number;
  unit: string;
  root: FlameNode;
}

/** A line of the stream of events: a change of a trace, or a sign of life. */
export type ServerEvent =
  | { ping: number }
  | { trace: number; generation: string; state: string; progress: number }
  | { recording: number; state: string };

/** A process that can be recorded. */
export interface Recordable {
  pid: number;
  command: string;
}

/** A recording that a page started. */
export interface Recording {
  id: number;
  pid: number;
  path: string;
  state: 'starting' | 'recording' | 'closing' | 'done' | 'failed';
  trace: number | null;
  seconds: number;
  error?: string;
  hint?: string;
  report?: { rows: Record<string, number>; whole: boolean; files: { path: string; bytes: number }[] };
}
