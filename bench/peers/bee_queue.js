'use strict';
// bee-queue: no groups, little bookkeeping. The anchor for what a small queue can cost.

const Queue = require('bee-queue');
const { run, enqueue, drain, payload } = require('./common.js');

function open(opts, isWorker) {
  return new Queue(opts.queue, {
    redis: opts.connection,
    isWorker,
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
    removeOnFailure: true,
  });
}

run({
  async enqueue(opts) {
    const queue = open(opts, false);
    await queue.ready();
    const result = await enqueue(
      opts,
      (i) => queue.createJob(payload(i)),
      async (chunk) => {
        const errors = await queue.saveAll(chunk);
        if (errors.size > 0) throw errors.values().next().value;
      },
    );
    await queue.close();
    return result;
  },

  async process(opts) {
    const queue = open(opts, true);
    await queue.ready();
    const start = (handler) => queue.process(opts.concurrency, handler);
    const result = await drain(opts, start, async () => {
      const health = await queue.checkHealth();
      return health.waiting === 0 && health.active === 0;
    });
    await queue.close();
    return result;
  },
});
