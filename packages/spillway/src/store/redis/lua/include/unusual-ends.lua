-- Uncommon ends of jobs. With include/finish-jobs, which documents the input, the twin of finishNow in
-- store/queue/finish-jobs.ts.
local FAILED_END, DEAD_END, RELEASED_END, RETURNED_END = 1, 2, 3, 4
local BREAKER_CLOSED = 0
local breaker

local function breaker_moved(generation)
  if not settings().has_breaker then return false end
  if not breaker then
    local packed = redis.call('GET', KEYS[BREAKER_AT])
    local fields = packed and cmsgpack.unpack(packed)
    -- See pack_breaker in include/breaker-state.
    breaker = { generation = fields and fields[3] or 0, kind = fields and fields[4] or BREAKER_CLOSED }
  end
  return breaker.kind ~= BREAKER_CLOSED or breaker.generation ~= generation
end

local function finish(id, turn, how, text, result_us)
  local job = leased_job(id)
  if not job then
    forget_lost(id)
    return STALE_REPLY
  end
  if job.unreadable then job[TURN] = tonumber(string.sub(turn, 2)) or 0 end
  if how == '' then
    end_job(id, job, DONE, text, result_us)
    return DONE_REPLY
  end
  if job.unreadable then
    end_job(id, job, DEAD, UNREADABLE_TEXT, settings().end_dead)
    return DEAD_REPLY
  end
  if job[CANCEL] == 1 then
    end_job(id, job, CANCELLED, text, result_us)
    return CANCELLED_REPLY
  end
  local kind, delay, generation, probe = unpack(cjson.decode(how))
  local known = kind == FAILED_END and generation >= 0 and probe == 0 and breaker_moved(generation)
  local probed = kind == FAILED_END and probe == 1
  local excused = kind == RELEASED_END or known or (probed and job[ATTEMPT] >= job[ATTEMPTS])
  if excused or probed then job[TAG] = 0 end
  if kind == RETURNED_END then
    job[ATTEMPT] = job[ATTEMPT] - 1
  elseif excused and job[UNCOUNTED] < settings().uncounted then
    job[UNCOUNTED], job[ATTEMPT] = job[UNCOUNTED] + 1, job[ATTEMPT] - 1
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

-- A resent result of this turn returns the recorded end.
local function repeated_reply(id, turn)
  local job = record_of(id)
  if not job or job.unreadable or ':' .. job[TURN] ~= turn then return STALE_REPLY end
  if job[STATE] == DONE then return DONE_REPLY end
  if job[STATE] == DEAD then return DEAD_REPLY end
  return job[STATE] == CANCELLED and CANCELLED_REPLY or STALE_REPLY
end
