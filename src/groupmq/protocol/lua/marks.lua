--[[
Read the marks that are kept (mark.lua), at most a hundred.

Arguments
  since       epoch ms; absent = all
Reply      marks, oldest first, each as text: the time in ms, a space, the label
Events     none
Cost       O(1): one command
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/whole"
--- @reads
return redis.call('ZRANGEBYSCORE', K.labels, A.since and whole(A.since) or '-inf', '+inf')
