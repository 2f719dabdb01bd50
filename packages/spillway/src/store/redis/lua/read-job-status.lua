-- State of one job, without its data and result. Twin of readJobStatus in
-- store/queue/maintenance.ts.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state; id
-- reply: state, attempt, progress, why it failed last; nothing if it is not known
-- expiry: nothing is written
local BEFORE_QUEUE = 0
--- @include queue-state
--- @include read-job
local id = settings().id
local job = read_job(id)
if not job then return false end
local text = job[STATE] ~= DONE and redis.call('HGET', KEYS[BEFORE_QUEUE + TEXTS], id)
return { job[STATE], job[ATTEMPT], job[PROGRESS], text or job.unreadable and UNREADABLE_TEXT or '' }
