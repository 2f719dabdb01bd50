-- Renews the leases of running jobs, and stores their progress. Twin of extendJobs in
-- store/queue/finish-jobs.ts.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state and include/publish-changes; lease us; leases: for each { id, turn, has progress 0|1 }; then the progress of each
-- reply: for each 0 lost, 1 kept, 2 kept, but the job was cancelled
-- expiry: see include/queue-state
local BEFORE_QUEUE = 0
local BEFORE_PROGRESS = 2
--- @include queue-state
--- @include queue-moves
--- @include publish-changes
local LOST, KEPT, STOP = 0, 1, 2
local until_us = queue_now + settings().lease
present_queue()
local reply, progressed = {}, {}
for index, leased in ipairs(settings().leases) do
  local id, turn, says = unpack(leased)
  local job = is_leased(id, turn) and leased_job(id)
  if not job then
    reply[index] = LOST
  else
    redis.call('ZADD', KEYS[BEFORE_QUEUE + LEASES], until_us, id .. ':' .. turn)
    meta[FIRST + LEASES] = math.min(meta[FIRST + LEASES], until_us)
    -- An unreadable record has no place for progress; its worker may still finish the job.
    if says == 1 and not job.unreadable then
      job[PROGRESS] = ARGV[BEFORE_PROGRESS + index]
      save_job(id, job)
      progressed[#progressed + 1] = id
    end
    reply[index] = job[CANCEL] == 1 and STOP or KEPT
  end
end
close_queue()
publish_changes('progress', progressed)
return reply
