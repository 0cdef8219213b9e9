--[[
What happened, for whoever listens: one entry in the stream `events` per call, however many jobs it concerned. A field
`e` holds the msgpack array {n, at, {kind, column, ...}, ...}: n counts entries, so that a reader knows when it has
missed some; a column is an array with a value per job, or one value for all:

  added      ids, groups                            active     ids, groups, attempts, worker
  begun      the same, of jobs that were taken ahead and are active by now
  completed  ids, groups, attempts, sizes           retrying   ids, groups, attempts, delays, reasons
  failed     ids, groups, attempts, reasons, stacks stalled    ids, groups, attempts, whether for good
  progress   ids, groups, values (JSON)             removed    ids, groups
  drained, paused, resumed: ids ('' each), groups ('' = the queue)

Jobs that were taken ahead and have completed were not told to be active: `completed` then has two columns more, 1 = it
became active and completed, else 0, and the worker.

`b`, if there, holds the results of the completed ones, joined; a size of -1 = none, -2 = no room, look at the job. What
does not stay with its job beyond this call always has room, other results ROOM bytes in all.

The log is bounded in bytes: each time SEGMENT bytes are full the id of the entry is noted in `marks`, and what lies
before the oldest of MARKS marks goes.
]]
--- @include "lib/meta"
local events = { on = not rules.silent }
--- @private
local SEGMENT, MARKS, ROOM = 524288, 8, 524288
local kinds, blob, n_bytes = {}, {}, 0

-- The columns of a kind, made on first use; append to each.
function events.columns(kind, n)
  local columns = kinds[kind]
  if not columns then
    columns = { kind }
    for i = 1, n do columns[i + 1] = {} end
    kinds[kind] = columns
  end
  return columns
end

-- One row of a kind that happens now and then.
function events.note(kind, ...)
  if not events.on then return end
  local row = { ... }
  local columns = events.columns(kind, #row)
  local n = #columns[2] + 1
  for i = 1, #row do columns[i + 1][n] = row[i] end
end

-- Ready-made columns of a kind that gets no others.
function events.give(kind, ...)
  if events.on then kinds[kind] = { kind, ... } end
end

-- What a completed job returned: how the entry will carry it.
function events.result(result, kept)
  if kept and n_bytes + #result > ROOM then return -2 end
  n_bytes = n_bytes + #result
  blob[#blob + 1] = result
  return #result
end

-- A column where all but some are as usual.
local function column(n, values, usual)
  if not values then return usual end
  local whole = {}
  for i = 1, n do whole[i] = values[i] or usual end
  return whole
end

-- Jobs that completed; `attempts` and `sizes` say what is not as usual, `ahead` is false if none was taken ahead.
function events.completed(ids, gids, attempts, sizes, ahead, worker)
  if not events.on then return end
  local columns = { 'completed', ids, gids, column(#ids, attempts, 1), column(#ids, sizes, -1) }
  if ahead then columns[6], columns[7] = ahead, worker end
  kinds.completed = columns
end

if events.on then
  W.before_commit[#W.before_commit + 1] = function()
    if next(kinds) == nil then return end
    local entry = { meta.logged + 1, now }
    for _, columns in pairs(kinds) do entry[#entry + 1] = columns end
    local fields = { 'e', cmsgpack.pack(entry) }
    if blob[1] then fields[3], fields[4] = 'b', table.concat(blob) end
    local bytes = meta.log_bytes + #fields[2] + #(fields[4] or '')
    W.hset(K.meta, 'logged', W.whole(meta.logged + 1))
    W.hset(K.meta, 'log_bytes', W.whole(bytes < SEGMENT and bytes or 0))
    -- Told, not asked: a log that cannot be written must not undo what has happened.
    W.log = function()
      local id = redis.pcall('XADD', K.events, '*', unpack(fields))
      if bytes < SEGMENT or type(id) ~= 'string' then return end
      redis.pcall('RPUSH', K.marks, id)
      if redis.pcall('LLEN', K.marks) > MARKS then
        redis.pcall('XTRIM', K.events, 'MINID', redis.pcall('LPOP', K.marks))
      end
    end
  end
end
