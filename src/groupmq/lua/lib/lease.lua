--[[
A lease: the right to run one job until a deadline, proven by a token that only grows. It is data (a deadline in
`active`, a value in `leases`), never a key with a TTL, so a clock jump of the server cannot make it vanish.
The value holds all that ending a run needs, so a completion reads neither the job's record nor its state.

Several jobs of a group may be taken together, to run one after the other (lib/take.lua). All of them have leases; those
behind the first are `ahead`: nobody knows yet whether they have started, and until then they never were active.
]]
--- @include "lib/meta"
--- @include "lib/state"
local lease = {}
--- @private
local deadlines, granted = W.list('ZADD', K.active), W.list('HSET', K.leases)
local ended, revoked, over, begun = W.list('ZREM', K.active), W.list('HDEL', K.leases), {}, {}

-- What a lease says beside its token. `s` is the job's state, false if it never ran.
function lease.terms(gid, worker, s, ahead)
  local attempts, stalls = 0, 0
  if s then attempts, stalls = s[ATTEMPTS], s[STALLS] end
  return struct.pack('>I6I2I2BI2', now, attempts, stalls, ahead and 1 or 0, #gid) .. gid .. worker
end

-- `deadline` is text: it and the terms are made once for many.
function lease.grant(id, terms, deadline)
  local token, n = meta.next_stamp(), #granted
  deadlines[n + 1], deadlines[n + 2] = deadline, id
  granted[n + 1], granted[n + 2] = id, struct.pack('>I7c0', token, terms)
  return token
end

-- A job that was taken ahead is known to have started. It may end within this very call.
function lease.begin(id, l)
  l.ahead = false
  begun[id] = l
end

-- The lease as this call leaves it.
function lease.current(id, l) return not over[id] and (begun[id] or l) end

-- The name of the worker is cut out only where it is asked for (lease.worker). `into`: a lease that nobody looks at any
-- more, to be filled again; hundreds of new ones in a call cost more than all else that is done with them.
function lease.decode(raw, into)
  local token, started, attempts, stalls, ahead, gid, after = struct.unpack('>I7I6I2I2BI2c0', raw)
  if into then
    into.token, into.started, into.attempts, into.stalls = token, started, attempts, stalls
    into.ahead, into.gid, into.raw, into.after = ahead == 1, gid, raw, after
    return into
  end
  return {
    token = token, started = started, attempts = attempts, stalls = stalls, ahead = ahead == 1, gid = gid, raw = raw,
    after = after,
  }
end

-- The group alone.
function lease.group_of(raw) return (struct.unpack('>I2c0', raw, 19)) end

function lease.worker(l) return string.sub(l.raw, l.after) end

-- As they are stored, false where there is none. For calls that have not ended any yet.
function lease.stored(ids) return redis.call('HMGET', K.leases, unpack(ids)) end

-- The leases of `ids`, false where there is none, or none any more: a run that this very call has reported as ended
-- must not end a second time because its deadline has passed.
function lease.load(ids)
  if #ids == 0 then return {} end
  local raw, untouched = lease.stored(ids), next(over) == nil and next(begun) == nil
  for i = 1, #ids do
    local value = raw[i]
    if value then
      local l = lease.decode(value)
      raw[i] = untouched and l or lease.current(ids[i], l)
    end
  end
  return raw
end

function lease.revoke(id)
  local n = #ended + 1
  ended[n], revoked[n] = id, id
  over[id] = true
end

lease.over = over -- job id -> true if this call has ended its lease already

-- The state of a job whose run under `l` has just ended, however it ended.
function lease.state_after(l) return { l.attempts + 1, l.stalls, l.started, 0, lease.worker(l), '', '' } end

-- The same where nobody says that it ran: one that was taken ahead has not, as far as anybody knows.
function lease.state_untold(l) return l.ahead and state.fresh() or lease.state_after(l) end

W.before_commit[#W.before_commit + 1] = function()
  for id, l in pairs(begun) do
    if not over[id] then
      local head = struct.pack('>I7I6I2I2B', l.token, l.started, l.attempts, l.stalls, 0)
      W.hset(K.leases, id, head .. string.sub(l.raw, #head + 1))
    end
  end
end
