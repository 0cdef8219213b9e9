'use strict';
// BullMQ, open source: no groups. removeOnComplete is set on the worker, not on the jobs, so
// that a waiting job does not carry the option and BullMQ gets its smallest record.

const { Queue, QueueEvents, Worker } = require('bullmq');
const { run, enqueue, drain, serve, load, probe, payload } = require('./common.js');
const { trickle, stamp, adds } = require('./trickle.js');

async function open(opts) {
  const queue = new Queue(opts.queue, { connection: opts.connection });
  await queue.waitUntilReady();
  return queue;
}

async function left(queue) {
  const counts = await queue.getJobCounts('wait', 'active');
  return counts.wait + counts.active;
}

// Add with `by`, which gets functions to describe a job and to add many.
async function adding(opts, by) {
  const queue = await open(opts);
  const describe = (i) => ({ name: 'job', data: payload(i) });
  const result = await by(opts, describe, (chunk) => queue.addBulk(chunk), () => left(queue));
  await queue.close();
  return result;
}

// Work with `by`, which gets functions to start the worker and to count the jobs left.
async function working(opts, by) {
  const queue = await open(opts);
  let worker;
  const start = (handler) => {
    worker = new Worker(opts.queue, handler, {
      connection: { ...opts.connection, maxRetriesPerRequest: null },
      concurrency: opts.concurrency,
      removeOnComplete: { count: opts.keep },
      removeOnFail: { count: opts.keep },
    });
    return worker.waitUntilReady();
  };
  const result = await by(opts, start, () => left(queue));
  await worker.close();
  await queue.close();
  return result;
}

async function waiting(opts) {
  const events = new QueueEvents(opts.queue, {
    connection: { ...opts.connection, maxRetriesPerRequest: null },
  });
  await events.waitUntilReady();
  return events;
}

run({
  enqueue: (opts) => adding(opts, enqueue),
  process: (opts) => working(opts, drain),
  load: (opts) => adding(opts, load),
  serve: (opts) => working(opts, serve),
  stamp: (opts) => working(opts, stamp),

  async trickle(opts) {
    const queue = await open(opts);
    const events = opts.waited ? await waiting(opts) : null;
    const add = (i) => queue.add('job', payload(i));
    const addAndWait = async (i) => (await add(i)).waitUntilFinished(events);
    const result = await trickle(opts, add, () => left(queue), addAndWait);
    await events?.close();
    await queue.close();
    return result;
  },

  async adds(opts) {
    const queue = await open(opts);
    const result = await adds(opts, (i) => queue.add('job', payload(i)));
    await queue.close();
    return result;
  },

  async probe(opts) {
    const queue = await open(opts);
    const events = await waiting(opts);
    const result = await probe(opts, async (data) => {
      const job = await queue.add('job', data);
      return job.waitUntilFinished(events);
    });
    await events.close();
    await queue.close();
    return result;
  },
});
