'use strict';
// GroupMQ for Node: per-group FIFO like ours. It has no bulk call; autoBatch turns adds made
// together into one script call, which is its fastest documented form.

const Redis = require('ioredis');
const { Queue, Worker } = require('groupmq');
const { run, enqueue, drain, payload, groupOf } = require('./common.js');
const { trickle, stamp, adds } = require('./trickle.js');

async function open(opts, extra) {
  const redis = new Redis({ ...opts.connection, maxRetriesPerRequest: null });
  const queue = new Queue({ redis, namespace: opts.queue, keepCompleted: 0, keepFailed: 0, ...extra });
  await queue.redis.ping();
  return queue;
}

const describe = (opts) => (i) => ({ groupId: groupOf(i, opts.groups), data: payload(i) });

async function left(queue) {
  const counts = await queue.getJobCounts();
  return counts.waiting + counts.active;
}

// Work with `by`, which gets functions to start the worker and to count the jobs left.
async function working(opts, by) {
  const queue = await open(opts, {});
  let worker;
  const start = (handler) => {
    worker = new Worker({ queue, handler, concurrency: opts.concurrency });
    worker.on('error', (error) => console.error(error));
  };
  const result = await by(opts, start, () => left(queue));
  await worker.close();
  await queue.close();
  return result;
}

run({
  async enqueue(opts) {
    const queue = await open(opts, { autoBatch: { size: opts.chunk, maxWaitMs: 1 } });
    const addAll = (chunk) => Promise.all(chunk.map((job) => queue.add(job)));
    const result = await enqueue(opts, describe(opts), addAll);
    await queue.close();
    return result;
  },

  process: (opts) => working(opts, drain),
  stamp: (opts) => working(opts, stamp),

  // Without autoBatch, which would delay a single job by a millisecond.
  async trickle(opts) {
    const queue = await open(opts, {});
    const one = describe(opts);
    const result = await trickle(opts, (i) => queue.add(one(i)), () => left(queue));
    await queue.close();
    return result;
  },

  async adds(opts) {
    const queue = await open(opts, {});
    const one = describe(opts);
    const result = await adds(opts, (i) => queue.add(one(i)));
    await queue.close();
    return result;
  },
});
