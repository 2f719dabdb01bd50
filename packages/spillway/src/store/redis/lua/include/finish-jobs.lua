-- How jobs end, for whichever trip brings it. Twin of finishNow in store/queue/finish-jobs.ts.
-- BREAKER_AT: which of KEYS is the breaker, which is only looked at
-- settings: has_breaker; end_dead (us that those are kept that die of it)
-- ARGV[BEFORE_ENDS]: us that results are kept; then for each end: the name of its lease; how it ended:
--       empty if it is done, else as JSON { kind (1 failed, 2 dead, 3 released), delay us, generation,
--       probe 0|1 }; its text
local FAILED_END, DEAD_END, RELEASED_END = 1, 2, 3
local STALE_REPLY, DONE_REPLY, AGAIN_REPLY, DEAD_REPLY, CANCELLED_REPLY = 0, 1, 2, 3, 4
local BREAKER_CLOSED = 0
local breaker

local function breaker_moved(generation)
  if not settings().has_breaker then return false end
  if not breaker then
    local packed = redis.call('GET', KEYS[BREAKER_AT])
    breaker = packed and cmsgpack.unpack(packed) or { kind = BREAKER_CLOSED, g = 0 }
  end
  return breaker.kind ~= BREAKER_CLOSED or breaker.g ~= generation
end

local function finish(id, job, how, text, result_us)
  if how == '' then
    end_job(id, job, DONE, text, result_us)
    return DONE_REPLY
  end
  if job[CANCEL] == 1 then
    end_job(id, job, CANCELLED, text, result_us)
    return CANCELLED_REPLY
  end
  local kind, delay, generation, probe = unpack(cjson.decode(how))
  local known = kind == FAILED_END and generation >= 0 and probe == 0 and breaker_moved(generation)
  local probed = kind == FAILED_END and probe == 1
  if probed then job[TAG] = 0 end
  if kind == RELEASED_END or known or (probed and job[ATTEMPT] >= job[ATTEMPTS]) then
    job[ATTEMPT] = job[ATTEMPT] - 1
  elseif kind == DEAD_END or job[ATTEMPT] >= job[ATTEMPTS] then
    end_job(id, job, DEAD, text, settings().end_dead)
    return DEAD_REPLY
  end
  if text ~= '' then redis.call('HSET', KEYS[BEFORE_QUEUE + TEXTS], id, text) end
  if delay > 0 then
    job[STATE] = DELAYED
    schedule(DELAYED_SET, queue_now + delay, id)
  else
    line(id, job)
  end
  save_job(id, job)
  return AGAIN_REPLY
end

-- Told again, what has ended under this number ends as it did.
local function told_before(id, turn)
  local job = record_of(id)
  if not job or lease_name('', job[TURN]) ~= turn then return STALE_REPLY end
  if job[STATE] == DONE then return DONE_REPLY end
  if job[STATE] == DEAD then return DEAD_REPLY end
  return job[STATE] == CANCELLED and CANCELLED_REPLY or STALE_REPLY
end

local function finish_all()
  forget_ended(2 * (#ARGV - BEFORE_ENDS) / 3)
  local result_us = tonumber(ARGV[BEFORE_ENDS])
  local reply = {}
  for at = BEFORE_ENDS + 1, #ARGV, 3 do
    local name, how, text = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    local id, turn = string.sub(name, 1, ID_LENGTH), string.sub(name, ID_LENGTH + 1)
    local ended
    if remove(LEASES, name) == 0 then
      ended = told_before(id, turn)
    elseif how == '' and result_us == 0 and turn == ':1' and meta[KEYED] == 0 then
      -- Nothing is known of it elsewhere.
      redis.call('HDEL', KEYS[BEFORE_QUEUE + JOBS], id)
      redis.call('HDEL', KEYS[BEFORE_QUEUE + DATA], id)
      ended = DONE_REPLY
    else
      ended = finish(id, leased_job(id), how, text, result_us)
      if ended == AGAIN_REPLY and meta[BLOCKED] <= queue_now then wake_one() end
    end
    reply[#reply + 1] = ended
  end
  return reply
end
