-- State changes that the scripts of a queue share. With include/queue-state the twin of
-- store/queue/queue-state.ts.
local MOST_AT_ONCE = 256
local LEASE_EXPIRED = 'the lease expired before the worker reported a result'
--- @include read-job

local function save_job(id, job)
  -- The replacement of an unreadable record is saved as an ordinary record.
  job.unreadable = nil
  redis.call('HSET', KEYS[BEFORE_QUEUE + JOBS], id, cmsgpack.pack(job))
end

-- Does not save the job.
local function line(id, job)
  local priority = job[PRIORITY]
  job[STATE], job[READY] = WAITING, queue_now
  if job[TAG] == 0 then
    local field = priority .. ':' .. job[TENANT]
    local last = tonumber(redis.call('HGET', KEYS[BEFORE_QUEUE + TAGS], field) or 0) or 0
    job[TAG] = math.max(meta[REACHED + priority], last) + 1
    redis.call('HSET', KEYS[BEFORE_QUEUE + TAGS], field, job[TAG])
  end
  redis.call('ZADD', KEYS[BEFORE_QUEUE + WAITING_SET], priority * SPAN + job[TAG], id)
  if waiting_in() == 0 then set_expiry(WAITING_SET) end
  meta[LINED + priority] = meta[LINED + priority] + 1
end

-- Most jobs end at their first turn and have no entries in other keys.
local function is_at_first_turn(job)
  return job[TURN] == 0 and job[STATE] < ACTIVE or job[TURN] == 1 and job[STATE] == ACTIVE
end

local function is_apart(job)
  return job[KEY] ~= '' or not job[SHORT_DATA] or job[TENANT] ~= ''
end

local function open_jobs_of(tenant)
  if tenant == '' then return 0 end
  return tonumber(redis.call('HGET', KEYS[BEFORE_QUEUE + TENANTS], 'c:' .. tenant) or 0) or 0
end

-- Counts a job that was added, or sent back from the dead letters.
local function count_open(id, tenant)
  if tenant == '' then return end
  local key = KEYS[BEFORE_QUEUE + TENANTS]
  redis.call('HSET', key, 'j:' .. id, tenant)
  redis.call('HSET', key, 'c:' .. tenant, open_jobs_of(tenant) + 1)
end

-- A tenant without open jobs has no state: its next job is treated as its first.
local function count_ended(id, tenant)
  if tenant == '' then return end
  local key = KEYS[BEFORE_QUEUE + TENANTS]
  if redis.call('HDEL', key, 'j:' .. id) == 0 then return end
  local left = open_jobs_of(tenant) - 1
  if left > 0 then
    redis.call('HSET', key, 'c:' .. tenant, left)
    return
  end
  redis.call('HDEL', key, 'c:' .. tenant)
  redis.call('HDEL', KEYS[BEFORE_QUEUE + TAGS], '0:' .. tenant, '1:' .. tenant, '2:' .. tenant, '3:' .. tenant)
end

-- For a job whose record was lost.
local function forget_lost(id)
  count_ended(id, redis.call('HGET', KEYS[BEFORE_QUEUE + TENANTS], 'j:' .. id) or '')
  redis.call('HDEL', KEYS[BEFORE_QUEUE + DATA], id)
  redis.call('HDEL', KEYS[BEFORE_QUEUE + TEXTS], id)
end

local function forget(id, job)
  redis.call('HDEL', KEYS[BEFORE_QUEUE + JOBS], id)
  if not is_at_first_turn(job) then
    redis.call('HDEL', KEYS[BEFORE_QUEUE + TEXTS], id)
    remove(ENDS, id)
    remove(DEAD_SET, id)
  end
  if not is_apart(job) then return end
  if not job[SHORT_DATA] then redis.call('HDEL', KEYS[BEFORE_QUEUE + DATA], id) end
  if job[KEY] ~= '' then redis.call('HDEL', KEYS[BEFORE_QUEUE + IDS_BY_KEY], job[KEY]) end
  meta[APART] = meta[APART] - 1
end

local function end_job(id, job, as, text, keep_us)
  count_ended(id, job[TENANT])
  if keep_us == 0 then return forget(id, job) end
  local has_text = not is_at_first_turn(job)
  job[STATE] = as
  save_job(id, job)
  schedule(ENDS, queue_now + keep_us, id)
  if as == DEAD then put(DEAD_SET, queue_now, id) end
  if text ~= '' then
    redis.call('HSET', KEYS[BEFORE_QUEUE + TEXTS], id, text)
  elseif has_text then
    redis.call('HDEL', KEYS[BEFORE_QUEUE + TEXTS], id)
  end
end

local function first_score(part)
  if meta[SIZE + part] == 0 then return nil end
  local first = redis.call('ZRANGE', KEYS[BEFORE_QUEUE + part], 0, 0, 'WITHSCORES')[2]
  if not first then meta[SIZE + part] = 0 end
  return tonumber(first)
end

-- Removes up to `most` due entries from the part, and returns them.
local function take_due(part, most)
  if meta[FIRST + part] > queue_now then return {} end
  local key = KEYS[BEFORE_QUEUE + part]
  local due = redis.call('ZRANGEBYSCORE', key, '-inf', queue_now, 'LIMIT', 0, most)
  if #due > 0 then redis.call('ZREM', key, unpack(due)) end
  meta[SIZE + part] = meta[SIZE + part] - #due
  meta[FIRST + part] = first_score(part) or NEVER
  return due
end

local function forget_ended(most)
  for _, id in ipairs(take_due(ENDS, most)) do
    local job = record_of(id)
    if job then
      forget(id, job)
    else
      remove(DEAD_SET, id)
      forget_lost(id)
    end
  end
end

local function bring_back(dead_us)
  for _, id in ipairs(take_due(DELAYED_SET, MOST_AT_ONCE)) do
    local job = record_of(id)
    if not job then
      forget_lost(id)
    elseif job.unreadable then
      end_job(id, job, DEAD, UNREADABLE_TEXT, dead_us)
    else
      line(id, job)
      save_job(id, job)
    end
  end
  for _, name in ipairs(take_due(LEASES, MOST_AT_ONCE)) do
    meta[EXPIRED_LEASES] = meta[EXPIRED_LEASES] + 1
    local id = string.sub(name, 1, ID_LENGTH)
    local job = leased_job(id)
    if not job then
      forget_lost(id)
    elseif job.unreadable then
      end_job(id, job, DEAD, UNREADABLE_TEXT, dead_us)
    elseif job[CANCEL] == 1 then
      end_job(id, job, CANCELLED, '', dead_us)
    elseif job[ATTEMPT] < job[ATTEMPTS] then
      line(id, job)
      save_job(id, job)
    else
      end_job(id, job, DEAD, LEASE_EXPIRED, dead_us)
    end
  end
end

local function park(worker, until_us)
  remove(PARKED, worker)
  put(PARKED, until_us, worker)
end

-- Workers whose parking time is over no longer listen; each is removed, so the loop ends.
local function wake_one()
  while meta[SIZE + PARKED] > 0 do
    local first = redis.call('ZRANGE', KEYS[BEFORE_QUEUE + PARKED], 0, 0, 'WITHSCORES')
    if not first[1] then
      meta[SIZE + PARKED] = 0
      return
    end
    remove(PARKED, first[1])
    if tonumber(first[2]) > queue_now then
      wakes[#wakes + 1] = first[1]
      return
    end
  end
end
