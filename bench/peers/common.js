'use strict';
// What every Node peer shares: the command line, the payload and the two clocks.
// A peer only says how its library adds a chunk, works and knows that it is drained, so that
// all of them are measured by the same rule.

const { parseArgs } = require('node:util');

const POLL_MS = 1;

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      port: { type: 'string' },
      queue: { type: 'string', default: 'bench' },
      jobs: { type: 'string', default: '1000' },
      groups: { type: 'string', default: '1000' },
      chunk: { type: 'string', default: '1000' },
      inflight: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '1' },
    },
  });
  return {
    action: positionals[0],
    queue: values.queue,
    connection: { host: '127.0.0.1', port: Number(values.port) },
    jobs: Number(values.jobs),
    groups: Number(values.groups),
    chunk: Number(values.chunk),
    inflight: Number(values.inflight),
    concurrency: Number(values.concurrency),
  };
}

// {"id":"00000000042"} is 20 bytes of JSON, and different for every job.
const payload = (i) => ({ id: String(i).padStart(11, '0') });
const groupOf = (i, groups) => `group-${i % groups}`;
const seconds = (from) => Number(process.hrtime.bigint() - from) / 1e9;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Time from the first call to the last acknowledgement.
async function enqueue(opts, describe, addChunk) {
  let next = 0;
  const lane = async () => {
    while (next < opts.jobs) {
      const first = next;
      const size = Math.min(opts.chunk, opts.jobs - first);
      next += size;
      await addChunk(Array.from({ length: size }, (_, i) => describe(first + i)));
    }
  };
  const started = process.hrtime.bigint();
  await Promise.all(Array.from({ length: opts.inflight }, lane));
  return { jobs: opts.jobs, seconds: seconds(started) };
}

// Time from the first handler call until the handler has run for every job and the library
// itself says that nothing waits or runs, so that the last acknowledgement is included.
async function drain(opts, start, isDrained) {
  let handled = 0;
  let started;
  const all = new Promise((resolve) => {
    start(async (job) => {
      if (handled === 0) started = process.hrtime.bigint();
      void job.data;
      handled += 1;
      if (handled === opts.jobs) resolve();
    });
  });
  await all;
  while (!(await isDrained())) await sleep(POLL_MS);
  return { jobs: opts.jobs, seconds: seconds(started), handled };
}

async function main(actions) {
  const opts = options();
  const action = actions[opts.action];
  if (!action) throw new Error(`expected enqueue or process, got ${opts.action}`);
  const result = await action(opts);
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}

function run(actions) {
  main(actions).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { run, enqueue, drain, payload, groupOf };
