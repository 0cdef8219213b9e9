--[[
The keys of one queue. Every call names one key, `<prefix>:{<queue>}:meta`; every other name is derived from it, so
all of them share one hash tag and live in one cluster slot. keys.py spells the same names; a test compares the two.

  meta       hash  schema, config, handling and revision (open.lua), rules (lib/meta.lua), numbers (lib/numbers.lua),
                   measures (lib/measure_value.lua), turn (lib/turn.lua), idle (lib/reserve.lua),
                   offer (lib/offer.lua)
  jobs       hash  job id -> record (lib/record.lua), for every job that exists, in whatever state
  bodies     hash  job id -> data of a large job (lib/bodies.lua); all other data is in the record;
                   '\255' .. repeat id -> the same of a repeat (lib/repeats.lua)
  state      hash  job id -> its attempts, stalls and times (lib/state.lua), only if it is not that of a job that
                   never ran; its state (active, failed ...) is not stored but follows from the keys that have it;
                   '\255' .. job id -> its earlier attempts (lib/history.lua)
  results    hash  job id -> return value, opaque bytes, only of kept completed jobs
  progress   hash  job id -> the last progress that its handler reported, JSON
  logs       hash  job id -> the newest lines that its handler appended to its log
  interrupts hash  job id -> the request to its worker: stop it, or give it back (lib/interrupts.lua)
  stopping   zset  runs that outlive their job, by the end of their lease (lib/stopping.lua)
  stops      hash  the same runs -> group and worker
  events     stream  the event log (lib/events.lua), bounded
  segments   list  ids of the entries that end a segment of `events`, half a megabyte each
  labels     zset  marks of operators, such as a deployment, by their time (mark.lua); the newest hundred
  g:<group>  zset  waiting jobs of a group, score 0, member = sort key .. id; the last one starts first
                   (`g:` with no group id holds the jobs that belong to no group); none while its head is alone
  groups     hash  group id -> running, delayed, head, holds (lib/group_value.lua), for every group with a live job
  conf       hash  group id -> operator's overrides: paused, limit, rate
  blocked    zset  groups that a failed job blocks, by the time since which they are blocked (lib/blocking.lua)
  blockers   hash  job id -> since when it blocks its group, and the group
  blocking   zset  the same jobs by group and time, score 0
  breakers   hash  group id -> failed attempts in a row, until when it rests (lib/breaker_changes.lua)
  breaking   zset  the same groups, by the time at which that is forgotten
  opened     zset  those of them whose breaker is open, by the time at which it opened
  ready      zset  groups that may start a job now, in the order of lib/line.lua
  parked     zset  groups whose head must wait, by the time it may start
  delayed    zset  jobs that wait outside their group, by due time
  expiring   zset  jobs that have not started and have a ttl, by the time it ends
  active     zset  jobs with a lease, by its deadline
  leases     hash  job id -> lease (lib/lease.lua)
  completed  zset  finished jobs that are kept, by stamp
  failed     zset  failed jobs that are kept, by stamp
  failures   list  one record per failed attempt, newest first, bounded
  series     hash  minute -> its numbers, for two weeks, and how long jobs waited and ran (lib/minutes.lua)
  requesters hash  worker requester -> its last request and reply, so that a resent request answers the same
  calls_even hash  client's requester -> its last call and the reply, for the same reason (lib/kept_replies.lua);
                   expires
  calls_odd  hash  the same for every other period
  workers    hash  worker id -> presence
  holders    zset  workers that have a reserve (lib/reserve.lua), by the time they took it; K.reservers
  wake       zset  the marker that idle workers block on; a hint, never data
  wake:<w>   zset  the marker for the worker whose turn it is, in an exclusive queue
  mail:<w>   zset  the mail of a worker: its heartbeat waits for it, so it makes the next one come at once
  grants:<w> zset  the job that an add has granted to an idle worker (lib/offer.lua), until that worker pops it
  starts     list  times of the last starts, newest first, as many as the queue's rate limit counts
  r:<group>  list  the same for a group with a rate limit
  rated      zset  groups that have an `r:` list, by the time from which it is no longer needed
  dedupe     hash  group and key -> the job that stands for it (lib/dedupe.lua)
  deduped    zset  the same, by the time at which the entry ends
  elsewhere  hash  id that a user gave -> where its job is, in a queue with partitions; written by clients
  unique     hash  job id -> how long it stays taken after its job has ended (lib/unique.lua)
  uniques    zset  ids whose job has ended, by the time at which they are free
  repeats    hash  repeat id -> definition (lib/repeats.lua)
  ticks      zset  repeat id, by its next tick
  never      none  does not exist; reading it stops a call in a slot that is being moved (lib/sending.lua)
  durable    text  the client's last write before it waits for replicas or a disk; expires
]]
local SCHEMA = '7'
local FAILURES_KEPT = 1000
local NEVER = '9007199254740992' -- ms, as text: 2^53, later than all times
local keys = {}
local K
--- @private
local FIXED = {
  'meta', 'jobs', 'bodies', 'state', 'results', 'progress', 'logs', 'interrupts', 'stopping', 'stops', 'events',
  'segments', 'labels', 'groups', 'conf', 'blocked', 'blockers', 'blocking', 'breakers', 'breaking', 'opened', 'ready',
  'parked', 'delayed', 'expiring', 'active', 'leases', 'completed', 'failed', 'failures', 'series', 'requesters',
  'calls_even', 'calls_odd', 'workers', 'wake', 'starts', 'rated', 'dedupe', 'deduped', 'elsewhere',
  'unique', 'uniques', 'repeats', 'ticks', 'durable', 'never',
}
-- The beginnings of keys that end in a group or a worker.
local BY_NAME = { group = 'g:', rate = 'r:', wake_of = 'wake:', mail = 'mail:', grants = 'grants:' }
local RENAMED = { reservers = 'holders' } -- stored under an earlier name
-- The key names depend only on the name of the queue, so they are cached for later calls. The cache is bounded, because
-- a server may have had a million queues.
local MOST = 1000
local known, n_known = {}, 0

local function make(meta_key)
  local base, names = string.sub(meta_key, 1, -5), {}
  for i = 1, #FIXED do names[FIXED[i]] = base .. FIXED[i] end
  for name, suffix in pairs(BY_NAME) do names[name] = base .. suffix end
  for name, stored in pairs(RENAMED) do names[name] = base .. stored end
  return names
end

function keys.begin(meta_key)
  K = known[meta_key]
  if K then return end
  if n_known == MOST then known, n_known = {}, 0 end
  K = make(meta_key)
  known[meta_key], n_known = K, n_known + 1
end
