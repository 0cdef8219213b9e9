--[[
The keys of one queue. KEYS[1] is always `<prefix>:{<queue>}:meta`; every other name is derived from it, so all
of them share one hash tag and live in one cluster slot. keys.py spells the same names; a test compares the two.

  meta       hash  schema, config, seq (arrivals), stamp (last token), order (last default order), paused,
                   limit (group_concurrency), rules (lib/meta.lua), overrides (1 while `conf` has fields),
                   repeat_at (the next tick), ttls (1 once a job had a ttl), throttled (until when), turn,
                   notes (1 once a job had progress or a log), logged and log_bytes (lib/events.lua), counters
  jobs       hash  job id -> record (lib/record.lua), for every job that exists, in whatever state
  state      hash  job id -> mutable record (lib/state.lua), only once a job deviates from "never ran"
  results    hash  job id -> return value, opaque bytes, only of kept completed jobs
  progress   hash  job id -> the last progress its handler reported, JSON
  logs       hash  job id -> what its handler logged, the newest lines
  cancels    hash  job id -> token of the run that is to be stopped
  events     stream  what happened (lib/events.lua), bounded
  marks      list  ids of entries in `events`, half a megabyte apart
  g:<group>  zset  waiting jobs of a group, score 0, member = place .. id, so that the last one starts first
                   (`g:` with no group id holds the jobs that belong to no group)
  groups     hash  group id -> running, delayed, holds (lib/group.lua), for every group with a live job
  conf       hash  group id -> operator's overrides: paused, limit, rate
  ready      zset  groups that may start a job now, in the order of lib/line.lua
  parked     zset  groups whose head must wait, by the time it may start
  delayed    zset  jobs that wait outside their group, by due time
  expiring   zset  jobs that have not started and have a ttl, by the time it ends
  active     zset  jobs with a lease, by its deadline
  leases     hash  job id -> lease (lib/lease.lua)
  completed  zset  finished jobs that are kept, by stamp
  failed     zset  failed jobs that are kept, by stamp
  failures   list  one record per failed attempt, newest first, bounded
  series     hash  minute -> what happened in it, for two weeks, and how long jobs waited and ran (lib/measure.lua)
  lanes      hash  worker lane -> its last request and reply, so that a resent request answers the same
  workers    hash  worker id -> presence
  wake       zset  the marker idle workers block on; a hint, never data
  hail:<w>   zset  the marker for the worker whose turn it is, in an exclusive queue
  mail:<w>   zset  the marker that makes a worker's heartbeat come at once
  starts     list  times of the last starts, newest first, as many as the queue's rate limit counts
  r:<group>  list  the same for a group with a rate limit
  rated      zset  groups that have an `r:` list, by the time it says nothing any more
  dedupe     hash  group and key -> the job that stands for it (lib/dedupe.lua)
  deduped    zset  the same, by the time it ends
  repeats    hash  repeat id -> definition (lib/repeats.lua)
  ticks      zset  repeat id, by its next tick
]]
local SCHEMA = '1'
local FAILURES_KEPT = 1000
local base = string.sub(KEYS[1], 1, -5)
local K = {
  meta = KEYS[1],
  jobs = base .. 'jobs',
  state = base .. 'state',
  results = base .. 'results',
  progress = base .. 'progress',
  logs = base .. 'logs',
  cancels = base .. 'cancels',
  events = base .. 'events',
  marks = base .. 'marks',
  groups = base .. 'groups',
  conf = base .. 'conf',
  ready = base .. 'ready',
  parked = base .. 'parked',
  delayed = base .. 'delayed',
  expiring = base .. 'expiring',
  active = base .. 'active',
  leases = base .. 'leases',
  completed = base .. 'completed',
  failed = base .. 'failed',
  failures = base .. 'failures',
  series = base .. 'series',
  lanes = base .. 'lanes',
  workers = base .. 'workers',
  wake = base .. 'wake',
  starts = base .. 'starts',
  rated = base .. 'rated',
  dedupe = base .. 'dedupe',
  deduped = base .. 'deduped',
  repeats = base .. 'repeats',
  ticks = base .. 'ticks',
  group = base .. 'g:',
  rate = base .. 'r:',
  hail = base .. 'hail:',
  mail = base .. 'mail:',
}
