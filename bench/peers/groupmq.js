'use strict';
// GroupMQ for Node: per-group FIFO like ours. It has no bulk call; autoBatch turns adds made
// together into one script call, which is its fastest documented form.

const Redis = require('ioredis');
const { Queue, Worker } = require('groupmq');
const { run, enqueue, drain, payload, groupOf } = require('./common.js');

function open(opts, extra) {
  const redis = new Redis({ ...opts.connection, maxRetriesPerRequest: null });
  return new Queue({ redis, namespace: opts.queue, keepCompleted: 0, keepFailed: 0, ...extra });
}

run({
  async enqueue(opts) {
    const queue = open(opts, { autoBatch: { size: opts.chunk, maxWaitMs: 1 } });
    await queue.redis.ping();
    const result = await enqueue(
      opts,
      (i) => ({ groupId: groupOf(i, opts.groups), data: payload(i) }),
      (chunk) => Promise.all(chunk.map((job) => queue.add(job))),
    );
    await queue.close();
    return result;
  },

  async process(opts) {
    const queue = open(opts, {});
    await queue.redis.ping();
    let worker;
    const start = (handler) => {
      worker = new Worker({ queue, handler, concurrency: opts.concurrency });
      worker.on('error', (error) => console.error(error));
    };
    const result = await drain(opts, start, async () => {
      const counts = await queue.getJobCounts();
      return counts.waiting + counts.active;
    });
    await worker.close();
    await queue.close();
    return result;
  },
});
