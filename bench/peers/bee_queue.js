'use strict';
// bee-queue: no groups, little bookkeeping. The lower bound of what a small queue can cost.

const Queue = require('bee-queue');
const { run, enqueue, drain, serve, load, probe, payload } = require('./common.js');
const { trickle, stamp, adds } = require('./trickle.js');

async function open(opts, extra) {
  const queue = new Queue(opts.queue, {
    redis: opts.connection,
    isWorker: false,
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
    removeOnFailure: true,
    ...extra,
  });
  await queue.ready();
  return queue;
}

async function left(queue) {
  const health = await queue.checkHealth();
  return health.waiting + health.active;
}

// Add with `by`, which gets functions to describe a job and to add many.
async function adding(opts, by) {
  const queue = await open(opts, {});
  const describe = (i) => queue.createJob(payload(i));
  const addChunk = async (chunk) => {
    const errors = await queue.saveAll(chunk);
    if (errors.size > 0) throw errors.values().next().value;
  };
  const result = await by(opts, describe, addChunk, () => left(queue));
  await queue.close();
  return result;
}

// Work with `by`, which gets functions to start the worker and to count the jobs left.
async function working(opts, by, extra) {
  const queue = await open(opts, { isWorker: true, ...extra });
  const start = (handler) => queue.process(opts.concurrency, handler);
  const result = await by(opts, start, () => left(queue));
  await queue.close();
  return result;
}

// Add a job and wait for its result. The event of the job object is lost if it comes before the
// reply of `save`, which happens under load. The same event of the queue object can be kept until
// then.
function waiter(queue) {
  const early = new Map();
  const waiting = new Map();
  let saving = 0;
  queue.on('job succeeded', (id, value) => {
    if (waiting.has(id)) waiting.get(id)(value);
    else if (saving > 0) early.set(id, value);
    waiting.delete(id);
  });
  return async (data) => {
    saving += 1;
    const { id } = await queue.createJob(data).save();
    saving -= 1;
    const found = early.get(id);
    if (saving === 0) early.clear();
    if (found !== undefined) return found;
    return new Promise((resolve) => waiting.set(id, resolve));
  };
}

run({
  enqueue: (opts) => adding(opts, enqueue),
  process: (opts) => working(opts, drain, {}),
  load: (opts) => adding(opts, load),
  serve: (opts) => working(opts, serve, { sendEvents: true }),
  stamp: (opts) => working(opts, stamp, { sendEvents: opts.waited }),

  async trickle(opts) {
    const queue = await open(opts, { getEvents: opts.waited });
    const add = (i) => queue.createJob(payload(i)).save();
    const wait = opts.waited ? waiter(queue) : null;
    const result = await trickle(opts, add, () => left(queue), (i) => wait(payload(i)));
    await queue.close();
    return result;
  },

  async adds(opts) {
    const queue = await open(opts, {});
    const result = await adds(opts, (i) => queue.createJob(payload(i)).save());
    await queue.close();
    return result;
  },

  async probe(opts) {
    const queue = await open(opts, { getEvents: true });
    const result = await probe(opts, waiter(queue));
    await queue.close();
    return result;
  },
});
