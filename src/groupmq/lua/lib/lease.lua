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

-- To each of `ids` a lease, with the terms at the same place. `deadline` is text: it and the terms are made once for
-- many. Returns the first token; the others follow it.
function lease.grant(ids, terms, deadline)
  local first, pack = meta.next_stamps(#ids), struct.pack
  for i = 1, #ids do
    local id, at = ids[i], 2 * i
    deadlines[at - 1], deadlines[at] = deadline, id
    granted[at - 1], granted[at] = id, pack('>I7c0', first + i - 1, terms[i])
  end
  return first
end

-- A job that was taken ahead is known to have started. It may end within this very call.
function lease.begin(id, l)
  l.ahead = false
  begun[id] = l
end

-- The lease as this call leaves it.
function lease.current(id, l) return not over[id] and (begun[id] or l) end

-- Token, started, attempts, stalls, 1 = ahead or 0, group, where the name of the worker begins. For hundreds of leases
-- in a call: a table for each would cost more than all else that is done with them.
function lease.fields(raw) return struct.unpack('>I7I6I2I2BI2c0', raw) end

-- The name of the worker is cut out only where it is asked for (lease.worker).
function lease.decode(raw)
  local token, started, attempts, stalls, ahead, gid, after = lease.fields(raw)
  return {
    token = token, started = started, attempts = attempts, stalls = stalls, ahead = ahead == 1, gid = gid, raw = raw,
    after = after,
  }
end

-- Whether it is of a job that was taken ahead; and its group alone.
function lease.is_ahead(raw) return string.byte(raw, 18) == 1 end
function lease.group_of(raw) return (struct.unpack('>I2c0', raw, 19)) end

function lease.worker(l) return string.sub(l.raw, l.after) end

-- As they are stored, false where there is none. For calls that have not ended any yet.
function lease.stored(ids) return ids[1] and redis.call('HMGET', K.leases, unpack(ids)) or {} end

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

-- The items that are not at one of these places, which are in order.
function lease.without(list, places)
  local left, n, next_place = {}, 0, 1
  for i = 1, #list do
    if places[next_place] == i then
      next_place = next_place + 1
    else
      n = n + 1
      left[n] = list[i]
    end
  end
  return left
end

-- End the leases of `ids` that stand under these tokens. Returns the ids of these, their leases as stored, and the
-- places of all others. The ids are not to be changed any more.
function lease.redeem(ids, tokens)
  local raw, refused, unpack_token = lease.stored(ids), {}, struct.unpack
  for i = 1, #ids do
    local id, value = ids[i], raw[i]
    if value and not over[id] and unpack_token('>I7', value) == tokens[i] then
      over[id] = true
    else
      refused[#refused + 1] = i
    end
  end
  if refused[1] then ids, raw = lease.without(ids, refused), lease.without(raw, refused) end
  W.all('ZREM', K.active, ids)
  W.all('HDEL', K.leases, ids)
  return ids, raw, refused
end

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
