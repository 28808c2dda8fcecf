// Words for the terms of answers: causes of idle time explained, parts of the critical path, tables.

/** @type {Record<string, string>} */
const EXPLAINED = {
  host_busy: 'The GPU had nothing to do. The thread that launched the next operation ran code between CUDA calls.',
  host_sync: 'The thread that launched the next operation waited for the GPU first, and launched only then.',
  host_allocation: 'The thread that launched the next operation allocated or freed memory first.',
  host_copy: 'The thread that launched the next operation was in a call that copies or sets memory.',
  host_lock: 'The thread that launched the next operation waited for a lock or another thread.',
  host_module: 'The thread that launched the next operation loaded or compiled device code first.',
  host_call: 'The thread that launched the next operation was in another CUDA call.',
  profiler_overhead:
    'The profiler held up the thread that launched the next operation. Without it, the gap would be shorter.',
  launch_gap:
    'The launch call was in progress. The GPU waited from the start of the call to the start of the operation.',
  dispatch: 'The operation was launched before the gap began. The GPU had not started it yet.',
  before_recording: 'The first operation of a stream waited for work from before the recording.',
  other_stream: 'The operation waited for work on another stream.',
  communication: 'The operation waited for communication.',
  unknown: 'The call that launched the next operation is not in the trace, so the cause is not known.',
  start: 'Other GPUs worked already. This one had not received its first operation.',
  end: 'This GPU had finished its last operation. The analyzed time ends later.',
};

/** @type {Record<string, string>} */
const PARTS = {
  work: 'GPU work',
  launch: 'launch (call to GPU start)',
  dispatch: 'queue delay on the same stream',
  stream_wait: 'wait for another stream',
  host: 'CPU code',
  host_wait: 'CPU wakes up after a wait',
};

/** @param {string} cause */
export function causeExplained(cause) {
  return EXPLAINED[cause] ?? 'The cause of this gap is not known.';
}

/** Why one event waits for another. @type {Record<string, string>} */
const WHY = {
  stream_order: 'order of the stream',
  event: 'event',
  default_stream: 'default stream',
  graph: 'edge of a graph',
  peer_copy: 'copy between GPUs',
  assumed: 'assumed from the times',
  host_wait: 'the CPU waits for the GPU',
  host_busy: 'the longest call in the gap',
};

/** @param {string} why */
export function whyWords(why) {
  return WHY[why] ?? why;
}

/** @param {string} part */
export function partWords(part) {
  return PARTS[part] ?? part.replaceAll('_', ' ');
}

/**
 * Where each table of a trace is on the timeline.
 * @type {Record<string, import('../core/answers.d.ts').TrackKind[]>}
 */
export const TRACKS_OF_TABLE = {
  kernels: ['stream', 'collective'],
  copies: ['stream'],
  sets: ['stream'],
  graph_launches: ['stream'],
  syncs: ['stream', 'waits'],
  api_calls: ['calls'],
  markers: ['markers'],
  host_calls: ['host', 'calls'],
  collectives: ['collective'],
};

/** `1 kernel`, `2 kernels`. @param {number} number @param {string} one @param {string} [many] */
export function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

/**
 * A C++ name without template and function arguments: `at::native::reduce_kernel`. Other names stay as they are.
 * @param {string} name
 */
export function shortName(name) {
  if (/\.py\(\d+\)|^<|operator\s*[<(]/.test(name)) return name;
  let out = '';
  let depth = 0;
  const plain = name.replace(/^void /, '').replaceAll('(anonymous namespace)::', '');
  for (let i = 0; i < plain.length; i += 1) {
    const letter = plain[i];
    const opens = (letter === '<' || letter === '(') && (depth > 0 || /[\w>)]/.test(plain[i - 1] ?? ''));
    if (opens) depth += 1;
    else if (depth > 0 && (letter === '>' || letter === ')')) depth -= 1;
    else if (depth === 0) out += letter;
  }
  return out.replace(/ const$/, '').trim() || name;
}
