-- Ends jobs whose lease the caller still holds. Twin of finishJobs in store/queue/finish-jobs.ts.
-- KEYS: breaker, which is only read; then the queue's (see include/queue-state)
-- ARGV: see include/queue-state, then see include/finish-jobs
-- reply: for each 0 stale, 1 done, 2 again, 3 dead, 4 cancelled
-- expiry: see include/queue-state
local BEFORE_QUEUE = 1
local BREAKER_AT = 1
local BEFORE_ENDS = 3
--- @include queue-state
--- @include finish-jobs
present_queue()
local reply = finish_all()
close_queue()
return reply
