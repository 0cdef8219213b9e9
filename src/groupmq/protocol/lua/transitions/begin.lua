--[[ Begin: the handler of a job was called. ]]
--- @include "lib/lease"
--- @include "lib/lease_changes"
--- @include "lib/events"
--- @include "lib/interrupts"

-- Publish that a prefetched job has begun. No `active` was published when it was taken.
local function announce_begin(id, l)
  if l.prefetched then events.publish('begun', id, l.gid, l.attempts + 1, lease.worker(l)) end
end

-- Record that the job has begun, as its worker reports. The report also answers a recall.
local function begin_job(id, l)
  announce_begin(id, l)
  lease_changes.begin_run(id, l)
  interrupts.begun(id)
end
