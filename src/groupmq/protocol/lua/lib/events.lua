--[[
The event log: one entry in the stream `events` per call, however many jobs it concerns. Nothing is written while the
rule `silent` is set. Field `e` is the msgpack array {n, at, {kind, column, ...}, ...}: n counts entries, so that a
reader notices when it has missed some; a column is an array with a value per job, or one value for all:

  added      ids, groups                            active     ids, groups, attempts, worker
  begun      the same, for prefetched jobs that have started since
  completed  ids, groups, attempts, sizes           retrying   ids, groups, attempts, delays, reasons
  failed     ids, groups, attempts, reasons, stacks stalled    ids, groups, attempts, whether for good
  progress   ids, groups, values (JSON)             removed    ids, groups
  blocked    ids, groups: the job that stopped its group
  unblocked  ids, groups: the job that was resolved last
  drained, paused, resumed: ids ('' each), groups ('' = the queue)

No `active` was published for a job that was still known only as prefetched when it completed. If there is such a job,
`completed` has two more columns: 1 = the job became active and completed, else 0; and the worker.

Field `b`, if present, holds the results of the completed jobs, joined. A size of -1 = no result, -2 = no room: read the
job. A result that is not kept with its job always has room. Kept results have ROOM bytes in total.

The log is bounded in bytes: after each SEGMENT bytes the id of the entry is appended to `segments`, and entries before
the oldest of KEPT segments are deleted.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/meta"
local events = {}
--- @private
local SEGMENT, KEPT, ROOM = 524288, 8, 524288

-- Store complete columns: the kind, then the columns. Nothing else is appended to them.
local function put(columns)
  call.events = call.events or {}
  call.events[columns[1]] = columns
end

-- The columns of a kind, created on first use; the caller appends to each.
function events.columns(kind, n)
  local columns = call.events and call.events[kind]
  if not columns then
    columns = { kind }
    for i = 1, n do columns[i + 1] = {} end
    put(columns)
  end
  return columns
end

-- Publish one event, of a kind that is not frequent.
function events.publish(kind, ...)
  if rules.silent then return end
  local row = { ... }
  local columns = events.columns(kind, #row)
  local n = #columns[2] + 1
  for i = 1, #row do columns[i + 1][n] = row[i] end
end

function events.give(kind, ...)
  if not rules.silent then put({ kind, ... }) end
end

-- Add the result of a completed job to the entry. Returns its size, -2 = no room. `kept`: also stored with the job.
function events.result(result, kept)
  local results, n_bytes = call.event_results or {}, (call.event_bytes or 0) + #result
  if kept and n_bytes > ROOM then return -2 end
  call.event_results, call.event_bytes = results, n_bytes
  results[#results + 1] = result
  return #result
end

-- A column in which most values are `usual`; `values` has the others, nil if there are none.
local function column(n, values, usual)
  if not values then return usual end
  local all = {}
  for i = 1, n do all[i] = values[i] or usual end
  return all
end

-- Publish completed jobs. `attempts`, `sizes`: only unusual values. `prefetched`: false if no job was prefetched.
function events.completed(ids, gids, attempts, sizes, prefetched, worker)
  if rules.silent then return end
  local columns = { 'completed', ids, gids, column(#ids, attempts, 1), column(#ids, sizes, -1) }
  if prefetched then columns[6], columns[7] = prefetched, worker end
  put(columns)
end

-- Build the entry of this call.
function events.note()
  local entry, results = { meta.logged + 1, now }, call.event_results
  for _, columns in pairs(call.events) do entry[#entry + 1] = columns end
  local fields = { 'e', cmsgpack.pack(entry) }
  if results then fields[3], fields[4] = 'b', results[2] and table.concat(results) or results[1] end
  local bytes = meta.log_bytes + #fields[2] + #(fields[4] or '')
  local is_full = bytes >= SEGMENT
  call.entry, call.ends_segment = fields, is_full
  meta.logged, meta.log_bytes = meta.logged + 1, is_full and 0 or bytes
end

-- Uses pcall: failing to append to the event log must not fail a call that has already written.
function events.write()
  local id = redis.pcall('XADD', K.events, '*', unpack(call.entry))
  if not call.ends_segment or type(id) ~= 'string' then return end
  redis.pcall('RPUSH', K.segments, id)
  if redis.pcall('LLEN', K.segments) > KEPT then
    redis.pcall('XTRIM', K.events, 'MINID', redis.pcall('LPOP', K.segments))
  end
end
