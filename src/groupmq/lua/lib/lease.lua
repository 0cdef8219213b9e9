--[[
A lease: the right to run one job until a deadline, proven by a token that only grows. It is data (a deadline in
`active`, a value in `leases`), never a key with a TTL, so a clock jump of the server cannot make it vanish.
The value holds all that ending a run needs, so a completion reads neither the job's record nor its state.
]]
--- @include "lib/meta"
--- @include "lib/horizon"
--- @include "lib/state"
local lease = {}

function lease.grant(id, gid, worker, s, lease_ms)
  local token = meta.next_stamp()
  W.zadd(K.active, now + lease_ms, id)
  horizon.note(now + lease_ms)
  W.hset(K.leases, id, struct.pack('>I7I6I2I2I2', token, now, s[ATTEMPTS], s[STALLS], #gid) .. gid .. worker)
  return token
end

function lease.decode(raw)
  local token, started, attempts, stalls, gid, after = struct.unpack('>I7I6I2I2I2c0', raw)
  return {
    token = token, started = started, attempts = attempts, stalls = stalls, gid = gid, worker = string.sub(raw, after),
  }
end

-- The leases of `ids`, false where there is none.
function lease.load(ids)
  local raw = #ids > 0 and redis.call('HMGET', K.leases, unpack(ids)) or {}
  for i = 1, #ids do raw[i] = raw[i] and lease.decode(raw[i]) end
  return raw
end

function lease.revoke(id)
  W.zrem(K.active, id)
  W.hdel(K.leases, id)
end
