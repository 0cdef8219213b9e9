--[[
Data of more than 8 KiB is kept beside the record of its job, in `bodies`. The record then has a flag and ends where the
data would begin (lib/record.lua). So records are small, and the many calls that read records for a group or a sort key
cost the same however large jobs are. Only calls that give data to a worker or a client read it, one job at a time.

Redis 7.0 hashes every byte of each string that a call makes, which takes about 1.2 ms per megabyte. So data is never
joined to anything and never cut out of anything if that can be avoided: one string per large job.

`large` in `meta` is 1 once the queue has had such a job, or a large result; until then no call looks at `bodies`.
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
local bodies = {}
--- @private
local REPEAT = '\255' -- no id begins with it

-- The field of the data that all jobs of a repeat get (lib/repeats.lua).
function bodies.of_repeat(rid) return REPEAT .. rid end
function bodies.repeat_of(field) return string.sub(field, 1, 1) == REPEAT and string.sub(field, 2) or nil end

-- How many bytes are kept beside the record of the job.
function bodies.size(id) return meta.large and redis.call('HSTRLEN', K.bodies, id) or 0 end

-- The data that is kept beside the record; nil if the record has it, false if it is lost.
function bodies.read(id, rec)
  if record.is_beside(rec) then return redis.call('HGET', K.bodies, id) end
end

-- Add the data of the `at`-th job of a reply to `call.brought`, which goes with the records: index, data ... Returns
-- false if the data is lost.
function bodies.bring(id, rec, at)
  local data = bodies.read(id, rec)
  if data then
    local brought = call.brought or {}
    local n = #brought
    brought[n + 1], brought[n + 2], call.brought = at, data, brought
  end
  return data ~= false
end
