-- Ends jobs, of whoever still has them. Twin of finishJobs in store/queue/finish-jobs.ts.
-- KEYS: breaker, which is only looked at; then the queue's (see include/queue-state)
-- ARGV: see include/queue-state; has_breaker, result us, dead us; ends: for each { id, turn, kind (0 done,
--       1 failed, 2 dead, 3 released), delay us, generation, probe 0|1 }; then the text of each
-- reply: for each 0 stale, 1 done, 2 again, 3 dead, 4 cancelled
-- expiry: see include/queue-state
local BEFORE_QUEUE = 1
local BEFORE_TEXTS = 2
--- @include queue-state
local END_DONE, END_FAILED, END_DEAD, END_RELEASED = 0, 1, 2, 3
local STALE_REPLY, DONE_REPLY, AGAIN_REPLY, DEAD_REPLY, CANCELLED_REPLY = 0, 1, 2, 3, 4
local TOLD = { [DONE] = DONE_REPLY, [DEAD] = DEAD_REPLY, [CANCELLED] = CANCELLED_REPLY }
local BREAKER_CLOSED = 0
local breaker

local function breaker_moved(generation)
  if not queue_input.has_breaker then return false end
  if not breaker then
    local packed = redis.call('GET', KEYS[1])
    breaker = packed and cmsgpack.unpack(packed) or { kind = BREAKER_CLOSED, g = 0 }
  end
  return breaker.kind ~= BREAKER_CLOSED or breaker.g ~= generation
end

local function finish(id, job, ended, text)
  local _, _, kind, delay, generation, probe = unpack(ended)
  if kind == END_DONE then
    end_job(id, job, DONE, text, queue_input.result)
    return DONE_REPLY
  end
  if job[CANCEL] == 1 then
    end_job(id, job, CANCELLED, text, queue_input.result)
    return CANCELLED_REPLY
  end
  local known = kind == END_FAILED and generation >= 0 and probe == 0 and breaker_moved(generation)
  local probed = kind == END_FAILED and probe == 1
  if probed then job[TAG] = 0 end
  if kind == END_RELEASED or known or (probed and job[ATTEMPT] >= job[ATTEMPTS]) then
    job[ATTEMPT] = job[ATTEMPT] - 1
  elseif kind == END_DEAD or job[ATTEMPT] >= job[ATTEMPTS] then
    end_job(id, job, DEAD, text, queue_input.dead)
    return DEAD_REPLY
  end
  if text ~= '' then write('HSET', TEXTS, id, text) end
  if delay > 0 then
    job[STATE] = DELAYED
    write('ZADD', DELAYED_SET, queue_now + delay, id)
  else
    line(id, job)
  end
  save_job(id, job)
  return AGAIN_REPLY
end

present_queue()
forget_ended(2 * #queue_input.ends)
local reply = {}
for index, ended in ipairs(queue_input.ends) do
  local id, turn = ended[1], ended[2]
  local job = read_job(id)
  if not job or job[TURN] ~= turn then
    reply[index] = STALE_REPLY
  elseif job[STATE] ~= ACTIVE then
    reply[index] = TOLD[job[STATE]] or STALE_REPLY
  else
    write('ZREM', LEASES, id)
    reply[index] = finish(id, job, ended, ARGV[BEFORE_TEXTS + index])
    if reply[index] == AGAIN_REPLY and meta.blocked <= queue_now then wake_one() end
  end
end
close_queue()
return reply
