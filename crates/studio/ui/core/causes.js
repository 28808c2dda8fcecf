// Causes of idle time in words, as the commands print them. Answers have either form.

/** @type {Record<string, string>} */
const CAUSES = {
  host_busy: 'CPU busy between calls',
  host_sync: 'CPU waits for the GPU',
  host_allocation: 'CPU in cudaMalloc/cudaFree',
  host_copy: 'CPU in a memcpy or memset call',
  host_lock: 'CPU waits for a lock',
  host_module: 'CPU loads a module',
  host_call: 'CPU in another call',
  profiler_overhead: 'profiler overhead',
  launch_gap: 'launch (call to GPU start)',
  dispatch: 'launched, not started by the GPU',
  before_recording: 'work from before the recording',
  other_stream: 'waits for another stream',
  communication: 'waits for communication',
  unknown: 'call not recorded',
  start: 'before its first GPU work',
  end: 'after its last GPU work',
};

/** @param {string} cause */
export function causeWords(cause) {
  return CAUSES[cause] ?? cause.replaceAll('_', ' ');
}

/** The cause that has these words. @param {string} words */
export function causeOf(words) {
  return Object.keys(CAUSES).find((cause) => CAUSES[cause] === words) ?? (CAUSES[words] ? words : null);
}
