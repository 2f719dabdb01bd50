-- Ends jobs, of whoever still has them. Twin of finishJobs in store/queue/finish-jobs.ts.
-- KEYS: breaker, which is only looked at; then the queue's (see include/queue-state)
-- ARGV: see include/queue-state; finish: { has_breaker, result us, dead us, ends (see
--       include/finish-jobs) }; then the text of each
-- reply: for each 0 stale, 1 done, 2 again, 3 dead, 4 cancelled
-- expiry: see include/queue-state
local BEFORE_QUEUE = 1
local BREAKER_AT = 1
local BEFORE_TEXTS = 2
--- @include queue-state
--- @include finish-jobs
present_queue()
local reply = finish_all(queue_input.finish, BEFORE_TEXTS)
close_queue()
return reply
