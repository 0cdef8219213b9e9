'use strict';
// Shared by all Node peers: the command line, the payload and the clocks.
// A peer only defines how its library adds a chunk, works and counts the jobs left, so that all
// of them are measured in the same way.

const { parseArgs } = require('node:util');

const POLL_MS = 1;
const TICK_MS = 5;
const PAUSE_MS = 4;
const LIMIT_MS = 5000;
const LATE = Symbol('late');

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
      keep: { type: 'string', default: '0' },
      rate: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '1' },
      warmup: { type: 'string', default: '0' },
      each: { type: 'string', default: '1' },
      waited: { type: 'string', default: '0' },
      sleep_ms: { type: 'string', default: '0' },
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
    keep: Number(values.keep),
    rate: Number(values.rate),
    seconds: Number(values.seconds),
    warmup: Number(values.warmup),
    each: Number(values.each),
    waited: Number(values.waited) > 0,
    sleepMs: Number(values.sleep_ms),
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
// itself reports that nothing waits or runs, so that the last acknowledgement is included. With
// --sleep_ms each handler waits that long.
async function drain(opts, start, left, answers = false) {
  let handled = 0;
  let started;
  const all = new Promise((resolve) => {
    start(async (job) => {
      started ??= process.hrtime.bigint();
      const { id } = job.data;
      if (opts.sleepMs > 0) await sleep(opts.sleepMs);
      handled += 1;
      if (handled === opts.jobs) resolve();
      return answers ? id : undefined;
    });
  });
  await all;
  while ((await left()) > 0) await sleep(POLL_MS);
  return { jobs: opts.jobs, seconds: seconds(started), handled };
}

const say = (figures) => process.stdout.write(`${JSON.stringify(figures)}\n`);

// The parent process closes the input of this one when it is no longer needed.
const toldToEnd = () => new Promise((resolve) => process.stdin.on('end', resolve).resume());

// Process the waiting jobs, print how long that took, then continue until the input is closed. Each
// handler returns the id of its payload as the result.
async function serve(opts, start, left) {
  const end = toldToEnd();
  say(await drain(opts, start, left, true));
  await end;
  return { jobs: opts.jobs };
}

// Add --rate jobs per second, those of a tick in one call, until the input is closed. The number
// of jobs left then shows whether the worker kept up.
async function load(opts, describe, addChunk, left) {
  let ended = false;
  toldToEnd().then(() => (ended = true));
  let added = 0;
  const started = process.hrtime.bigint();
  say({ rate: opts.rate });
  while (!ended) {
    const due = Math.min(opts.chunk, Math.floor(seconds(started) * opts.rate) - added);
    if (due > 0) await addChunk(Array.from({ length: due }, (_, i) => describe(added + i)));
    added += Math.max(0, due);
    await sleep(TICK_MS);
  }
  const took = seconds(started);
  return { jobs: added, seconds: took, left: await left() };
}

// The value of a promise, or LATE if that takes too long.
async function limited(promise) {
  let timer;
  const limit = new Promise((resolve) => (timer = setTimeout(resolve, LIMIT_MS, LATE)));
  const result = await Promise.race([promise, limit]);
  clearTimeout(timer);
  return result;
}

// Milliseconds from the call that adds a job to its result, for --jobs jobs one by one, or as many
// as --seconds allow. A result that is late counts with the limit. The pauses are random, so that
// they do not synchronise with the load.
async function probe(opts, addAndWait) {
  let next = 0;
  const several = async (jobs, limit) => {
    const ms = [];
    const began = process.hrtime.bigint();
    while (ms.length < jobs && seconds(began) < limit) {
      const data = payload(next);
      next += 1;
      const started = process.hrtime.bigint();
      const result = await limited(addAndWait(data));
      ms.push(1000 * seconds(started));
      if (result !== LATE && result !== data.id) throw new Error(`expected ${data.id}, got ${result}`);
      await sleep(PAUSE_MS * Math.random());
    }
    return ms;
  };
  await several(opts.warmup, opts.seconds / 5);
  return { ms: await several(opts.jobs, opts.seconds) };
}

async function main(actions) {
  const opts = options();
  const action = actions[opts.action];
  if (!action) throw new Error(`expected one of ${Object.keys(actions)}, got ${opts.action}`);
  const result = await action(opts);
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}

function run(actions) {
  main(actions).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = {
  run, enqueue, drain, serve, load, probe, payload, groupOf,
  say, sleep, limited, toldToEnd,
};
