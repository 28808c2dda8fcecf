/** What `tracesmith analyze --only NAME --format json` prints. docs/reference/json.md describes the fields. */

/** An absolute time. Times that a Number cannot hold exactly arrive as bigint. */
export type Nanos = number | bigint;

export interface Distribution {
  count: number;
  total_ns: number;
  mean_ns: number;
  min_ns: number;
  p50_ns: number;
  p95_ns: number;
  p99_ns: number;
  max_ns: number;
}

export interface Breakdown {
  span_ns: number;
  busy_ns: number;
  idle_ns: number;
  utilization: number;
  compute_ns: number;
  communication_ns: number;
  copy_ns: number;
  set_ns: number;
  communication_hidden_ns: number;
  communication_exposed_ns: number;
  copy_exposed_ns: number;
}

export interface Utilization {
  devices: (Breakdown & { device: number; name: string; ops: number; max_concurrency: number })[];
}

export interface Gap {
  from_ns: Nanos;
  offset_ns: number;
  to_ns: Nanos;
  cause: string;
  cause_ns: number;
  next: string;
  next_table: string;
  next_row: number;
  overhead_ns: number;
  launch_call_ns: number;
}

export interface CauseTotal {
  cause: string;
  total_ns: number;
  share: number;
  gaps: number;
}

export interface Idle {
  devices: {
    device: number;
    name: string;
    span_ns: number;
    idle_ns: number;
    gaps: number;
    causes: CauseTotal[];
    longest: Gap[];
    by_cause: Gap[];
  }[];
  streams: {
    device: number;
    process: number;
    context: number;
    stream: number;
    span_ns: number;
    idle_ns: number;
    gaps: number;
    causes: CauseTotal[];
  }[];
}

export interface HostPlaces {
  total_ns: number;
  operators: Place[];
  ranges: Place[];
  functions: Place[];
  lines: Place[];
}

export interface Place {
  name: string;
  total_ns: number;
  share: number;
}

export interface Host {
  idle: HostPlaces;
  critical_path: HostPlaces | null;
}

export interface Step {
  name: string;
  start_ns: Nanos;
  end_ns: Nanos;
  offset_ns: number;
  is_warm_up: boolean;
  is_cut_off: boolean;
  ops: number;
  devices: (Breakdown & { device: number })[];
}

export interface Steps {
  source: { kind: string; name?: string; anchor?: string; kernels?: number; is_nvtx?: boolean };
  processes: number;
  settled: Distribution;
  gpu_period: Distribution;
  steps: Step[];
}

export interface KernelRow extends Distribution {
  name: string;
  class: string;
  share: number;
  step_ns: number | null;
  step_spread: number | null;
  longest_row: number;
  longest_start_ns: Nanos;
}

export interface Kernels {
  by: string;
  count: number;
  total_ns: number;
  steps: number;
  places_problem?: string | null;
  rows: KernelRow[];
}

export interface CopyRow extends Distribution {
  device: number;
  device_name: string;
  direction: string;
  source: string | null;
  destination: string | null;
  bytes: number;
  gigabytes_per_second: number | null;
  best_gigabytes_per_second: number | null;
  peak_gigabytes_per_second: number | null;
  peak_of: string | null;
  small: number;
  longest_row: number;
  longest_start_ns: Nanos;
  is_pageable: boolean;
}

export interface Copies {
  rows: CopyRow[];
}

export interface Launches {
  latency: Distribution;
  delay: Distribution;
  call: Distribution;
  graph_launches: number;
  graph_kernels: number;
  short_kernels: {
    count: number;
    launched: number;
    share: number;
    kernel_ns: number;
    call_ns: number;
    call_share: number;
    worst_start_ns: Nanos | null;
    worst_end_ns: Nanos | null;
  } | null;
  queues: {
    device: number;
    name: string;
    max: number;
    max_at_ns: Nanos;
    mean: number;
    empty_share: number;
    series: { start_ns: Nanos; mean: number; max: number }[];
  }[];
  launch_bound: {
    device: number;
    device_name: string;
    from_ns: Nanos;
    offset_ns: number;
    to_ns: Nanos;
    ops: number;
    idle_ns: number;
  }[];
}

export interface Holder {
  stack: string;
  kept_by: string | null;
  bytes: number;
  count: number;
  late: number;
  first_ns: Nanos;
  first_row: number;
}

export interface Pool {
  process: number;
  pid: number;
  rank: number | null;
  device: number | null;
  device_name: string | null;
  memory: string;
  allocator: string | null;
  allocations: number;
  frees: number;
  allocated_bytes: number;
  peak_bytes: number;
  peak_at_ns: Nanos | null;
  live_bytes: number;
  kept_bytes: number;
  holders: Holder[];
  never_freed: Holder[];
  series: { time_ns: Nanos; bytes: number }[];
  churn: { stack: string; count: number; bytes: number; held_ns: number }[];
  reserved_peak_bytes: number | null;
  fragmentation: number | null;
}

export interface Memory {
  pools: Pool[];
  double_frees: { time_ns: Nanos; address: Nanos; stack: string; row: number }[];
  unknown_frees: { time_ns: Nanos; address: Nanos; stack: string; row: number }[];
}

export interface PathTotal {
  part: string;
  name: string;
  total_ns: number;
  share: number;
  count: number;
}

export interface CriticalPath {
  path_ns: number;
  span_ns: number;
  totals: PathTotal[];
  segments: { part: string; from_ns: Nanos; to_ns: Nanos; name: string; table: string | null; row: number | null }[];
  slack: { name: string; count: number; on_path: number; min_slack_ns: number; mean_slack_ns: number }[];
  contradicted: number;
  cpu_ahead_ns: number;
}

export interface WhatIfAnswer {
  what_if: {
    measured_ns: number;
    unchanged_ns: number;
    changed_ns: number;
    speedup: number;
    scaled_ops: number;
    scaled_on_path: number;
    scaled_on_path_ns: number;
    left_waits: number;
    path_work_share: number;
    explanation: string | null;
    step: { count: number; measured_ns: number; changed_ns: number; path: PathTotal[] } | null;
    steps: { number: number; name: string; measured_ns: number; changed_ns: number }[];
    path: { path_ns: number; totals: PathTotal[]; host: HostPlaces };
  }[];
}

export interface Evidence {
  what: string;
  table: string;
  row: number | null;
  start_ns: Nanos;
  offset_ns: number;
  end_ns: Nanos;
  cause_ns: number | null;
}

export interface Finding {
  rule: string;
  sentence: string;
  advice: string;
  assumption: string;
  saves_ns: number | null;
  saves_share: number | null;
  evidence: Evidence[];
}

export interface Findings {
  findings: Finding[];
  gpu_bound: string | null;
}

export interface Doubts {
  doubts: Record<string, number | boolean>;
}
