--[[ Repair the data of large jobs (lib/bodies.lua). ]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/bodies"
--- @include "lib/body_changes"
--- @include "lib/repeats"
--- @include "transitions/remove"
--- @include "lib/repair/repair"
--- @private

-- Whether the record of a job, or the definition of a repeat, refers to this data.
local function belongs(field, rec)
  local rid = bodies.repeat_of(field)
  if not rid then return rec and record.is_beside(rec) end
  local raw = redis.call('HGET', K.repeats, rid)
  return raw and repeats.is_sound(raw) and record.is_beside(select(2, repeats.unpack(raw)), 3)
end

-- Data must belong to a job or to a repeat, and the flag that makes calls read it must be set.
function repair.bodies(ids)
  if not ids[1] then return end
  if not meta.large then
    meta.large = true
    repair.report('data of large jobs that no call looks for', 'large')
  end
  local recs = redis.call('HMGET', K.jobs, unpack(ids))
  for i = 1, #ids do
    if not belongs(ids[i], recs[i]) then
      body_changes.drop(ids[i])
      repair.report('data of no job', bodies.repeat_of(ids[i]) or ids[i])
    end
  end
end

-- Remove a job whose data is lost, because it cannot run again. A running job stays, because its worker has the data.
-- Returns whether the job was removed.
function repair.lost_data(job)
  if not record.is_beside(job.rec) or redis.call('HEXISTS', K.bodies, job.id) == 1 then return false end
  if job.lease then return false end
  remove_job(job)
  repair.report('job whose data is lost', job.id)
  return true
end
