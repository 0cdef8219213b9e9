--[[
Jobs that a worker prefetches as heads of other groups than those it starts now, or without a group: its reserve
(lib/choose.lua). They have leases of their own and count as prefetched (lib/lease.lua) until their worker starts them.

No job may wait in a reserve while another worker has a free slot. So no worker takes a reserve while another worker is
known to be idle. Only the last worker that found nothing is known; so a worker that takes a reserve also sets the
marker `wake`, as if work were left, and a worker that finds nothing to start asks the reservers: they are woken, the
reply to their next call asks for their reserve, and they give back the jobs they have not started. For PAUSE ms after
that no worker takes a reserve.

  holders  zset  the reservers: worker -> when it last took a reserve. A worker that was asked is removed
  held     in `meta`, 1 while `holders` may have members: idle workers of a queue without reserves read nothing more
  asked    in `meta`, when a worker last had to ask for a reserve
  idle     in `meta`, the last worker that found nothing to start, preceded by the time until which it counts as idle;
           may be empty
]]
--- @include "lib/call"
--- @include "lib/keys"
--- @include "lib/clock"
--- @include "lib/whole"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/prefetch"
--- @include "lib/writes"
--- @include "lib/state"
--- @include "lib/group"
--- @include "lib/heads"
--- @include "lib/mail"
--- @include "lib/offer"
local reserve = {}
--- @private
local PAUSE = 100 -- ms after a worker had to ask, during which no worker takes a reserve
local IDLE = 5000 -- ms for which a worker counts as idle after it found nothing
local OLD = 1000 -- ms; a reserve that was taken longer ago is used up
local MOST = 20 -- the most workers that one call asks

-- Whether a worker had to ask within PAUSE. math.abs, because the clock may have been set back since.
local function is_asked_for() return meta.asked ~= nil and math.abs(now - meta.asked) < PAUSE end

-- The last worker that found nothing, and until when that counts; nil if it has found something since.
local function last_idle()
  local till, worker = string.match(meta.idle or '', '^(%d+) (.*)$')
  return worker, tonumber(till)
end

local function another_is_idle(worker)
  local other, till = last_idle()
  return other and other ~= worker and till > now and till <= now + IDLE
end

-- How many jobs a call may take in all, its reserve included; 0 = no reserve.
function reserve.size(who)
  if not who.fill or meta.paused or not prefetch.heads_in_queue() then return 0 end
  if is_asked_for() or another_is_idle(who.worker) then return 0 end
  return who.fill
end

-- Find out whether each job may be prefetched. `known`: job id -> the answer.
local function look(ids, known, default)
  local recs, states = redis.call('HMGET', K.jobs, unpack(ids)), state.load(ids)
  for i = 1, #ids do
    known[ids[i]] = false
    if recs[i] then
      local _, max, has_ttl = record.terms(recs[i])
      known[ids[i]] = prefetch.job_allows(states[i], max, has_ttl, default)
    end
  end
end

-- Returns a function that tells whether the head of a ready group may be prefetched. The heads of the following groups,
-- `gids`, are read together with it; `n`: jobs that are still wanted.
function reserve.fitness(default)
  local known = {} -- by job id
  return function(g, gids, from, n)
    if not prefetch.group_allows(g) then return false end
    local id = record.id_of(g.head)
    if known[id] ~= nil then return known[id] end
    local ids = { id }
    if g.id == '' then
      heads.look_ahead(g, n + 1)
      for i = g.pos or 1, #g.stored do ids[#ids + 1] = record.id_of(g.stored[i]) end
    end
    for i = from, #gids do
      local other = group.get(gids[i])
      if other.head then ids[#ids + 1] = record.id_of(other.head) end
    end
    look(ids, known, default)
    return known[id]
  end
end

-- Record that `worker` has taken a reserve.
function reserve.took(worker)
  W.zadd(K.reservers, whole(now), worker)
  meta.held = true
end

-- Ask all other reservers to give back their reserves, because `worker` has a free slot and found nothing to start.
function reserve.ask(worker)
  if not meta.held then return end
  local found = redis.call('ZRANGE', K.reservers, 0, MOST - 1, 'REV', 'WITHSCORES')
  local left = #found / 2
  for i = 1, #found, 2 do
    local old = math.abs(now - tonumber(found[i + 1])) >= OLD
    if old or found[i] ~= worker then
      W.zrem(K.reservers, found[i])
      left = left - 1
      if not old then
        mail.send(found[i])
        call.asked = true -- stored at the end: the reply to this caller must not ask for its own reserve
      end
    end
  end
  if left == 0 and #found < 2 * MOST then meta.held = false end
end

-- Record that `worker` has found nothing to start: it counts as idle for IDLE ms.
function reserve.set_idle(worker)
  local known, till = last_idle()
  if known ~= worker or till < now + IDLE / 2 or till > now + IDLE then
    W.hset(K.meta, 'idle', whole(now + IDLE) .. ' ' .. worker)
  end
end

-- Record that `worker` is not idle: it is busy in every slot, or leaves. That ends its offer too.
function reserve.works(worker)
  offer.withdraw(worker)
  if last_idle() == worker then W.hset(K.meta, 'idle', '') end
end

function reserve.note() meta.asked = now end

-- The fence up to which a worker must give back its prefetched heads because another worker is idle, 0 = none.
function reserve.wanted() return is_asked_for() and meta.stamp or 0 end
