--[[
The stored sorted set of a group's waiting jobs. Only this file and lib/sending.lua know its direction: jobs that start
later have smaller sort keys (lib/record.lua), so the job that starts first is the last member.
]]
local waiting = { START = '+' }
--- @private

-- The `n` members that start first, in that order.
function waiting.first(key, n) return redis.call('ZRANGE', key, 0, n - 1, 'REV') end

-- `n` members in the order in which they start, from `start` on: START, or what `waiting.after` returned.
function waiting.page(key, start, n) return redis.call('ZRANGE', key, start, '-', 'BYLEX', 'REV', 'LIMIT', 0, n) end

-- The start of the page after a member, or after all members that begin with the given bytes.
function waiting.after(member) return '(' .. member end
