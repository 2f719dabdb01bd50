-- How jobs end, for whichever trip brings it. Twin of finishNow in store/queue/finish-jobs.ts.
-- BREAKER_AT: which of KEYS is the breaker, which is only looked at
-- ends: for each { id, turn, kind (0 done, 1 failed, 2 dead, 3 released), delay us, generation, probe 0|1 }
local END_DONE, END_FAILED, END_DEAD, END_RELEASED = 0, 1, 2, 3
local STALE_REPLY, DONE_REPLY, AGAIN_REPLY, DEAD_REPLY, CANCELLED_REPLY = 0, 1, 2, 3, 4
local TOLD = { [DONE] = DONE_REPLY, [DEAD] = DEAD_REPLY, [CANCELLED] = CANCELLED_REPLY }
local BREAKER_CLOSED = 0
local breaker

local function breaker_moved(ends, generation)
  if not ends.has_breaker then return false end
  if not breaker then
    local packed = redis.call('GET', KEYS[BREAKER_AT])
    breaker = packed and cmsgpack.unpack(packed) or { kind = BREAKER_CLOSED, g = 0 }
  end
  return breaker.kind ~= BREAKER_CLOSED or breaker.g ~= generation
end

local function finish(ends, id, job, ended, text)
  local _, _, kind, delay, generation, probe = unpack(ended)
  if kind == END_DONE then
    end_job(id, job, DONE, text, ends.result)
    return DONE_REPLY
  end
  if job[CANCEL] == 1 then
    end_job(id, job, CANCELLED, text, ends.result)
    return CANCELLED_REPLY
  end
  local known = kind == END_FAILED and generation >= 0 and probe == 0 and breaker_moved(ends, generation)
  local probed = kind == END_FAILED and probe == 1
  if probed then job[TAG] = 0 end
  if kind == END_RELEASED or known or (probed and job[ATTEMPT] >= job[ATTEMPTS]) then
    job[ATTEMPT] = job[ATTEMPT] - 1
  elseif kind == END_DEAD or job[ATTEMPT] >= job[ATTEMPTS] then
    end_job(id, job, DEAD, text, ends.dead)
    return DEAD_REPLY
  end
  if text ~= '' then add_to('HSET', TEXTS, id, text) end
  if delay > 0 then
    job[STATE] = DELAYED
    schedule(DELAYED_SET, queue_now + delay, id)
  else
    line(id, job)
  end
  save_job(id, job)
  return AGAIN_REPLY
end

-- before: so many of ARGV stand before the text of the first
local function finish_all(ends, before)
  forget_ended(2 * #ends.ends)
  local reply = {}
  for index, ended in ipairs(ends.ends) do
    local id, turn = ended[1], ended[2]
    local job = read_job(id)
    if not job or job[TURN] ~= turn then
      reply[index] = STALE_REPLY
    elseif job[STATE] ~= ACTIVE then
      reply[index] = TOLD[job[STATE]] or STALE_REPLY
    else
      call('ZREM', LEASES, id)
      reply[index] = finish(ends, id, job, ended, ARGV[before + index])
      if reply[index] == AGAIN_REPLY and meta.blocked <= queue_now then wake_one() end
    end
  end
  return reply
end
