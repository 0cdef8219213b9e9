'use strict';
// Jobs that arrive one by one: a producer at a fixed rate, a worker that records when jobs start,
// and a caller that waits for each add. The clocks are those of trickle.py and single.py.

const { say, sleep, limited, toldToEnd } = require('./common.js');

const INFLIGHT = 1000;
const DRAIN_MS = 5000;
const POLL_MS = 5;

// CLOCK_MONOTONIC: the same for every process of the machine.
const nowUs = () => Number(process.hrtime.bigint()) / 1000;

// Adds that are not acknowledged yet, at most INFLIGHT; the first error ends the run.
class Calls {
  open = 0;
  error = null;
  wake = () => {};

  start(call) {
    this.open += 1;
    call
      .catch((error) => (this.error ??= error))
      .finally(() => {
        this.open -= 1;
        this.wake();
      });
  }

  async below(limit) {
    while (this.open >= limit) await new Promise((resolve) => (this.wake = resolve));
    if (this.error) throw this.error;
  }
}

async function drained(left) {
  const limit = nowUs() + DRAIN_MS * 1000;
  let waiting = await left();
  while (waiting > 0 && nowUs() < limit) {
    await sleep(POLL_MS);
    waiting = await left();
  }
  return waiting;
}

// Add --rate jobs per second for --seconds, one per call, and record when every --each-th was sent.
// With --waited wait for the results of these jobs instead; one that is late counts with the limit.
// Before that, --warmup jobs that do not count; when they are done, `ready` is printed.
async function trickle(opts, addOne, left, addAndWait) {
  const noted = { id: [], sent_us: [], result_ms: [] };
  const calls = new Calls();
  let next = 0;

  const waitFor = async (i, sent) => {
    await limited(addAndWait(i));
    noted.result_ms.push((nowUs() - sent) / 1000);
  };
  const send = (counted) => {
    const i = next;
    next += 1;
    if (!counted || i % opts.each !== 0) return addOne(i);
    const sent = nowUs();
    if (opts.waited) return waitFor(i, sent);
    noted.id.push(i);
    noted.sent_us.push(sent);
    return addOne(i);
  };
  const pace = async (jobs, counted) => {
    const began = nowUs();
    for (let done = 0; done < jobs; ) {
      const due = Math.min(jobs, 1 + Math.floor(((nowUs() - began) / 1e6) * opts.rate));
      for (; done < due; done += 1) {
        await calls.below(INFLIGHT);
        calls.start(send(counted));
      }
      await sleep(Math.max(1, (done * 1000) / opts.rate - (nowUs() - began) / 1000));
    }
    await calls.below(1);
    return drained(left);
  };

  await pace(opts.warmup, false);
  say({ ready: 1 });
  const began = nowUs();
  const jobs = opts.rate * opts.seconds;
  const waiting = await pace(jobs, true);
  return { jobs, seconds: (nowUs() - began) / 1e6, left: waiting, ...noted };
}

// Process jobs until the input is closed, and record when every --each-th job started.
async function stamp(opts, start) {
  const end = toldToEnd();
  const noted = { id: [], at_us: [] };
  let handled = 0;
  await start(async (job) => {
    const at = nowUs();
    const { id } = job.data;
    handled += 1;
    if (Number(id) % opts.each === 0) {
      noted.id.push(Number(id));
      noted.at_us.push(at);
    }
    return id;
  });
  say({ ready: 1 });
  await end;
  return { jobs: handled, ...noted };
}

// Microseconds of each of --jobs adds, one by one, after --warmup that do not count.
async function adds(opts, addOne) {
  const us = [];
  for (let i = 0; i < opts.warmup + opts.jobs; i += 1) {
    const began = nowUs();
    await addOne(i);
    if (i >= opts.warmup) us.push(nowUs() - began);
  }
  return { us };
}

module.exports = { trickle, stamp, adds };
