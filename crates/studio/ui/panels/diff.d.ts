/** What `tracesmith diff A B --format json` prints. Times are of a step or of the whole trace, on average. */

export interface Compared {
  a_ns: number;
  b_ns: number;
  change_ns: number;
  change: number | null;
  p: number | null;
  p_adjusted: number | null;
  is_in_every_step: boolean;
  is_significant: boolean;
}

export interface KernelDiff extends Compared {
  name: string;
  renamed_to: string | null;
  fate: 'kept' | 'renamed' | 'new' | 'gone';
  count_a: number;
  count_b: number;
}

export interface CopyDiff extends Compared {
  direction: string;
  count_a: number;
  count_b: number;
  a_bytes: number;
  b_bytes: number;
}

export interface MemoryDiff {
  process: string;
  allocator: string;
  a_bytes: number | null;
  b_bytes: number | null;
}

export interface Diff {
  runs: { what: string; a: string; b: string }[];
  unit: 'step' | 'trace';
  steps_a: number;
  steps_b: number;
  has_enough_steps: boolean;
  time: Compared;
  busy: Compared;
  idle: (Compared & { cause: string })[];
  memory: MemoryDiff[];
  copies: CopyDiff[];
  by: 'name' | 'short';
  kernels: KernelDiff[];
  is_over: boolean | null;
  doubts_a: Record<string, number | boolean>;
  doubts_b: Record<string, number | boolean>;
}
