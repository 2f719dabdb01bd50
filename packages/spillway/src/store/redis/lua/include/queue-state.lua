-- What is shared about a job queue, and the moves that all its scripts are made of. Twin of
-- store/queue/queue-state.ts.
-- KEYS: twelve of the queue, after those that the script names (BEFORE_QUEUE of them)
-- ARGV: time (see include/server-time), then one JSON object; in it, besides what each script says,
--       life (us) that a queue nobody touches has, and what channels to wake workers begin with
-- expiry: whatever is written, the queue's life
-- In meta, besides what the twin keeps: how many are parked; by part, a time before which none of its
-- scores is; when expiries were last set. All to save calls.
-- Waiting jobs are in one sorted set, priorities one after the other, inside a priority by tag.
local META, WAITING_SET, DELAYED_SET, LEASES, ENDS, DEAD_SET, PARKED = 1, 2, 3, 4, 5, 6, 7
local JOBS, DATA, TEXTS, IDS_BY_KEY, TAGS = 8, 9, 10, 11, 12
-- Records are arrays:
local STATE, PRIORITY, TAG, ATTEMPT, ATTEMPTS, TURN, READY = 1, 2, 3, 4, 5, 6, 7
local DEADLINE, TENANT, KEY, COST, PROGRESS, CANCEL = 8, 9, 10, 11, 12, 13
local WAITING, DELAYED, ACTIVE, DONE, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5
local PRIORITIES = 4
-- Room for the tags of one priority.
local SPAN = 281474976710656
local MOST_AT_ONCE = 256
-- In the year 2255.
local NEVER = 9000000000000000
local LAPSED = 'the worker did not say how it ended'
local TOO_LATE = 'its deadline has passed'

--- @include server-time
local queue_input = cjson.decode(ARGV[2])
local touched = {}
local wakes = {}

local function call(command, part, ...)
  return redis.call(command, KEYS[BEFORE_QUEUE + part], ...)
end

-- What adds something may make the key anew, without an end.
local function add_to(command, part, ...)
  touched[part] = true
  return redis.call(command, KEYS[BEFORE_QUEUE + part], ...)
end

local packed_meta = call('GET', META)
local meta = packed_meta and cmsgpack.unpack(packed_meta) or {
  t = 0, ahead = 0, last = 0, paused = 0, alarm = 0, blocked = 0, lapsed = 0,
  reached = { 0, 0, 0, 0 }, counts = { 0, 0, 0, 0 }, parked = 0, renewed = 0,
  first = { [DELAYED_SET] = NEVER, [LEASES] = NEVER, [ENDS] = NEVER },
}
local queue_server = server_us()
local queue_now = math.max(meta.t, queue_server + meta.ahead)

local function present_queue()
  if meta.t - queue_server - meta.ahead > SET_BACK_US then meta.ahead = meta.t - queue_server end
  meta.t = queue_now
end

local function close_queue()
  local life_ms = math.ceil(queue_input.life / 1000)
  if (queue_now - meta.renewed) * 10 > queue_input.life then
    for part = WAITING_SET, TAGS do touched[part] = true end
    meta.renewed = queue_now
  end
  call('SET', META, cmsgpack.pack(meta), 'PX', life_ms)
  for part in pairs(touched) do call('PEXPIRE', part, life_ms) end
  -- Being woken is for speed: a server that does not let us publish must not keep us from working.
  for _, worker in ipairs(wakes) do redis.pcall('PUBLISH', queue_input.wakes .. worker, '') end
end

local function next_id()
  meta.last = math.max(meta.last + 1, queue_now)
  return string.format('%016.0f', meta.last)
end

-- With its score, into a part that is looked at when its first score is due.
local function schedule(part, score, id)
  add_to('ZADD', part, score, id)
  if score < meta.first[part] then meta.first[part] = score end
end

local function waiting_in()
  local counts = meta.counts
  return counts[1] + counts[2] + counts[3] + counts[4]
end

local function read_job(id)
  local packed = call('HGET', JOBS, id)
  return packed and cmsgpack.unpack(packed)
end

-- Of a job that is there: so its key is, with an end.
local function save_job(id, job)
  call('HSET', JOBS, id, cmsgpack.pack(job))
end

-- Does not save the job.
local function line(id, job)
  local priority = job[PRIORITY]
  job[STATE], job[READY] = WAITING, queue_now
  if job[TAG] == 0 then
    local field = priority .. ':' .. job[TENANT]
    local last = tonumber(call('HGET', TAGS, field) or 0)
    job[TAG] = math.max(meta.reached[priority + 1], last) + 1
    add_to('HSET', TAGS, field, job[TAG])
  end
  add_to('ZADD', WAITING_SET, priority * SPAN + job[TAG], id)
  meta.counts[priority + 1] = meta.counts[priority + 1] + 1
end

local function unline(id, job)
  call('ZREM', WAITING_SET, id)
  meta.counts[job[PRIORITY] + 1] = meta.counts[job[PRIORITY] + 1] - 1
end

local function forget(id, job)
  call('HDEL', JOBS, id)
  call('HDEL', DATA, id)
  -- Most end at their first turn, and have left nothing else behind.
  local first_turn = job[TURN] == 0 or (job[TURN] == 1 and job[STATE] == ACTIVE)
  if job[STATE] > ACTIVE or not first_turn then
    call('HDEL', TEXTS, id)
    call('ZREM', ENDS, id)
    call('ZREM', DEAD_SET, id)
  end
  if job[KEY] ~= '' then call('HDEL', IDS_BY_KEY, job[KEY]) end
end

local function end_job(id, job, as, text, keep_us)
  if keep_us == 0 then return forget(id, job) end
  job[STATE] = as
  save_job(id, job)
  schedule(ENDS, queue_now + keep_us, id)
  if as == DEAD then add_to('ZADD', DEAD_SET, queue_now, id) end
  if text == '' then call('HDEL', TEXTS, id) else add_to('HSET', TEXTS, id, text) end
end

local function first_score(part)
  return tonumber(call('ZRANGE', part, 0, 0, 'WITHSCORES')[2])
end

-- So many that are due; they leave the part.
local function take_due(part, most)
  if meta.first[part] > queue_now then return {} end
  local ids = call('ZRANGEBYSCORE', part, '-inf', queue_now, 'LIMIT', 0, most)
  for _, id in ipairs(ids) do call('ZREM', part, id) end
  meta.first[part] = first_score(part) or NEVER
  return ids
end

local function forget_ended(most)
  for _, id in ipairs(take_due(ENDS, most)) do forget(id, read_job(id)) end
end

local function bring_back(dead_us)
  for _, id in ipairs(take_due(DELAYED_SET, MOST_AT_ONCE)) do
    local job = read_job(id)
    line(id, job)
    save_job(id, job)
  end
  for _, id in ipairs(take_due(LEASES, MOST_AT_ONCE)) do
    meta.lapsed = meta.lapsed + 1
    local job = read_job(id)
    if job[CANCEL] == 1 then
      end_job(id, job, CANCELLED, '', dead_us)
    elseif job[ATTEMPT] < job[ATTEMPTS] then
      line(id, job)
      save_job(id, job)
    else
      end_job(id, job, DEAD, LAPSED, dead_us)
    end
  end
end

local function unpark(worker)
  if meta.parked > 0 then meta.parked = meta.parked - call('ZREM', PARKED, worker) end
end

local function park(worker, until_us)
  meta.parked = meta.parked + add_to('ZADD', PARKED, until_us, worker)
end

-- Those whose time is over are gone; the loop ends with them.
local function wake_one()
  while meta.parked > 0 do
    local first = call('ZRANGE', PARKED, 0, 0, 'WITHSCORES')
    if not first[1] then
      meta.parked = 0
      return
    end
    unpark(first[1])
    if tonumber(first[2]) > queue_now then
      wakes[#wakes + 1] = first[1]
      return
    end
  end
end

local function first_of(priority)
  local from = priority * SPAN
  return call('ZRANGEBYSCORE', WAITING_SET, from, '(' .. string.format('%.0f', from + SPAN), 'LIMIT', 0, 1)[1]
end

local function view_of(id)
  local job = read_job(id)
  if not job then return false end
  return {
    id, job[STATE], call('HGET', DATA, id), job[PRIORITY], job[TENANT], job[KEY], job[ATTEMPT],
    job[ATTEMPTS], queue_now - tonumber(id), job[PROGRESS], call('HGET', TEXTS, id) or '',
  }
end
