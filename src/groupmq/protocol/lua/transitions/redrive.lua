--[[ Redrive: an operator runs a failed job again, with its original sort key and its attempts counted from 0. ]]
--- @include "lib/keys"
--- @include "lib/meta"
--- @include "lib/record"
--- @include "lib/writes"
--- @include "lib/events"
--- @include "lib/history"
--- @include "lib/unique"
--- @include "lib/put_back"
--- @include "transitions/remove"

-- `s`: the state of the job, false if there is none.
local function redrive_job(job, s)
  detach_job(job)
  if s then history.keep_last(job.id, s) end
  W.hdel(K.state, job.id)
  if meta.uniques then unique.lives(job.id) end
  put_back(job.id, job.rec)
  events.publish('added', job.id, record.group_of(job.rec))
end
