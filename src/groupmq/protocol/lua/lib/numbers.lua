--[[
The numbers and flags of a queue: one value in `meta`, because every call reads most of them and writes some.

  stamp, seq, order                  lib/meta.lua
  due                                lib/horizon.lua
  concurrency                        group_concurrency
  repeat_at                          the next tick of a repeat, 0 = none
  limited_until                      until when no job may start, lib/starts.lua
  stopping                           lib/stopping.lua, 0 = none
  period, resent                     lib/kept_replies.lua
  asked                              lib/reserve.lua, 0 = never
  logged, log_bytes                  lib/events.lua
  epoch                              the last turn of an exclusive queue, lib/turn.lua
  paused                             by an operator
  overrides                          1 while `conf` has fields
  ttls                               1 once a job had a ttl
  progress                           1 once a job had progress or a log
  large                              1 once a job or a result was large, lib/bodies.lua
  interrupts                         1 while `interrupts` may have fields
  attempts, loose                    lib/history.lua
  held                               1 while `holders` may have members, lib/reserve.lua
  blocks                             1 while `blocked` may have members, lib/blocking.lua
  breakers                           1 while `breakers` may have fields, lib/breaker_changes.lua
  uniques                            1 once a job had an id that stays taken, lib/unique.lua
  spared                             lib/retention.lua
]]
--- @include "lib/keys"
local numbers = {}
--- @private
local LAYOUT = '>I7I6I6I7I4I6I6I6I6I6I6I6I4I6BBBBBBBBBBBBI7'
local SIZE = 101

-- Whether the value has the length that `numbers.pack` makes.
function numbers.is_ours(raw) return raw and #raw == SIZE end

function numbers.read(m, raw)
  local repeat_at, stopping, asked, paused, overrides, ttls, progress, large, interrupts, attempts, loose, held
  local blocks, breakers, uniques
  m.stamp, m.seq, m.order, m.due, m.concurrency, repeat_at, m.limited_until, stopping, m.period, m.resent, asked,
    m.logged, m.log_bytes, m.epoch, paused, overrides, ttls, progress, large, interrupts, attempts, loose, held,
    blocks, breakers, uniques, m.spared =
    struct.unpack(LAYOUT, raw)
  m.repeat_at = repeat_at > 0 and repeat_at or nil
  m.stopping = stopping > 0 and stopping or nil
  m.asked = asked > 0 and asked or nil
  m.paused, m.overrides, m.ttls, m.progress, m.large = paused == 1, overrides == 1, ttls == 1, progress == 1, large == 1
  m.interrupts, m.attempts, m.loose, m.held = interrupts == 1, attempts == 1, loose == 1, held == 1
  m.blocks, m.breakers, m.uniques = blocks == 1, breakers == 1, uniques == 1
end

function numbers.pack(m)
  return struct.pack(
    LAYOUT, m.stamp, m.seq, m.order, m.due, m.concurrency, m.repeat_at or 0, m.limited_until, m.stopping or 0,
    m.period, m.resent, m.asked or 0, m.logged, m.log_bytes, m.epoch, m.paused and 1 or 0, m.overrides and 1 or 0,
    m.ttls and 1 or 0, m.progress and 1 or 0, m.large and 1 or 0, m.interrupts and 1 or 0, m.attempts and 1 or 0,
    m.loose and 1 or 0, m.held and 1 or 0, m.blocks and 1 or 0, m.breakers and 1 or 0, m.uniques and 1 or 0, m.spared
  )
end

-- The numbers of a new queue.
function numbers.of_new_queue(concurrency)
  return {
    stamp = 0, seq = 0, order = 0, due = tonumber(NEVER), concurrency = concurrency, limited_until = 0, period = 0,
    resent = 0, logged = 0, log_bytes = 0, epoch = 0, spared = 0,
  }
end
