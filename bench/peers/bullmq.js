'use strict';
// BullMQ, open source: no groups. removeOnComplete is set on the worker, not on the jobs, so
// that a waiting job does not carry the option and BullMQ gets its smallest record.

const { Queue, Worker } = require('bullmq');
const { run, enqueue, drain, payload } = require('./common.js');

run({
  async enqueue(opts) {
    const queue = new Queue(opts.queue, { connection: opts.connection });
    await queue.waitUntilReady();
    const result = await enqueue(
      opts,
      (i) => ({ name: 'job', data: payload(i) }),
      (chunk) => queue.addBulk(chunk),
    );
    await queue.close();
    return result;
  },

  async process(opts) {
    const queue = new Queue(opts.queue, { connection: opts.connection });
    await queue.waitUntilReady();
    let worker;
    const start = (handler) => {
      worker = new Worker(opts.queue, handler, {
        connection: { ...opts.connection, maxRetriesPerRequest: null },
        concurrency: opts.concurrency,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      });
    };
    const result = await drain(opts, start, async () => {
      const counts = await queue.getJobCounts('wait', 'active');
      return counts.wait === 0 && counts.active === 0;
    });
    await worker.close();
    await queue.close();
    return result;
  },
});
