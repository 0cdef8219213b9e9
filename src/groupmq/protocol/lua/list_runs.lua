--[[
Read a page of the jobs that have a lease.

Arguments
  cursor      '0' = start
  groups      only jobs of these groups; absent = of all groups
Reply      {next cursor ('0' = end), how many leases were read,
            per job: {id, group, fence, started, attempt, 1 = prefetched: it may not have started, worker}}
Events     none
Cost       about PAGE leases, one command
]]
--- @include "lib/args"
--- @include "lib/keys"
--- @include "lib/lease"
local PAGE = 500
--- @reads
local scan = redis.call('HSCAN', K.leases, A.cursor, 'COUNT', PAGE)
local wanted, runs = A.groups and {}, {}
for _, gid in ipairs(A.groups or {}) do wanted[gid] = true end
for i = 1, #scan[2], 2 do
  local l = lease.decode(scan[2][i + 1])
  if l and (not wanted or wanted[l.gid]) then
    runs[#runs + 1] = {
      scan[2][i], l.gid, l.fence, l.started, l.attempts + 1, l.prefetched and 1 or 0, lease.worker(l),
    }
  end
end
return { scan[1], #scan[2] / 2, runs }
