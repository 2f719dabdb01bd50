-- Reads a job; nil if its record was lost. A leased job has its record from before the lease (see include/queue-state).
local function leased_job(id)
  local job = record_of(id)
  if not job or job.unreadable or job[STATE] == ACTIVE then return job end
  job[STATE], job[TURN], job[ATTEMPT] = ACTIVE, job[TURN] + 1, job[ATTEMPT] + 1
  return job
end

local function is_leased(id, turn)
  return redis.call('ZSCORE', KEYS[BEFORE_QUEUE + LEASES], id .. ':' .. turn)
end

local function read_job(id)
  local job = record_of(id)
  if job and job[STATE] == WAITING and is_leased(id, job[TURN] + 1) then return leased_job(id) end
  return job
end

local function view_of(id)
  local job = read_job(id)
  if not job then return false end
  local text = redis.call('HGET', KEYS[BEFORE_QUEUE + TEXTS], id) or job.unreadable and UNREADABLE_TEXT or ''
  return {
    id, job[STATE], data_of(id, job), job[PRIORITY], job[TENANT], job[KEY], job[ATTEMPT], job[ATTEMPTS],
    queue_now - (tonumber(id) or queue_now), job[PROGRESS], text,
  }
end
