-- What is shared about a job queue, and the moves that all its scripts are made of. Twin of
-- store/queue/queue-state.ts.
-- KEYS: twelve of the queue, after those that the script names (BEFORE_QUEUE of them)
-- ARGV: time (see include/server-time), then one JSON object, for what most trips do not ask for; in it,
--       besides what each script says, life (us) that a queue nobody touches has, and what channels to
--       wake workers begin with
-- expiry: all of a queue end together, a life or a little more after it was last touched
-- Waiting jobs are in one sorted set, priorities one after the other, inside a priority by tag.
-- A lease is its own record: its name is the job's id and turn, and what is kept of the job stays as it
-- was before. So a job that is taken and done is not written in between, nor read again.
local META, WAITING_SET, DELAYED_SET, LEASES, ENDS, DEAD_SET, PARKED = 1, 2, 3, 4, 5, 6, 7
local JOBS, DATA, TEXTS, IDS_BY_KEY, TAGS = 8, 9, 10, 11, 12
-- Of the queue, an array: what the twin keeps, when its expiry is set anew (in its own time) and what it
-- is (ms of the server), and how many jobs have a key.
local SEEN, AHEAD, LAST, IS_PAUSED, ALARM, BLOCKED, LAPSED, RENEWAL, EXPIRY, KEYED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- Four of each, for each priority: how far it has got, and how many wait.
local REACHED, LINED = 11, 15
-- After these by part: how many are in it, and a time before which none of its scores is. To save calls.
local SIZE, FIRST = 16, 21
local META_FORM = '<dddddddddddddddddddddddddd'
local META_LENGTH = 26
-- Of a job, an array, too:
local STATE, PRIORITY, TAG, ATTEMPT, ATTEMPTS, TURN, READY = 1, 2, 3, 4, 5, 6, 7
local DEADLINE, TENANT, KEY, COST, PROGRESS, CANCEL = 8, 9, 10, 11, 12, 13
local WAITING, DELAYED, ACTIVE, DONE, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5
local PRIORITIES = 4
local ID_LENGTH = 16
-- Room for the tags of one priority.
local SPAN = 281474976710656
local MOST_AT_ONCE = 256
-- In the year 2255.
local NEVER = 9000000000000000
local LAPSED_TEXT = 'the worker did not say how it ended'
local TOO_LATE_TEXT = 'its deadline has passed'

--- @include server-time
local decoded
local function settings()
  decoded = decoded or cjson.decode(ARGV[2])
  return decoded
end

local stored_meta = redis.call('GET', KEYS[BEFORE_QUEUE + META])
local meta = stored_meta and { struct.unpack(META_FORM, stored_meta) }
  or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NEVER, NEVER, NEVER }
local queue_server = server_us()
local queue_now = math.max(meta[SEEN], queue_server + meta[AHEAD])
local renewed = false
local wakes = {}

local function set_expiry(part)
  local left_ms = meta[EXPIRY] - math.floor(queue_server / 1000)
  redis.call('PEXPIRE', KEYS[BEFORE_QUEUE + part], left_ms)
end

-- Hashes are never empty, so that they need no expiry when something comes into them.
local function renew()
  local life = settings().life
  meta[RENEWAL] = queue_now + life / 10
  meta[EXPIRY] = math.ceil((queue_server + life * 1.1) / 1000)
  for part = JOBS, TAGS do redis.call('HSET', KEYS[BEFORE_QUEUE + part], '', '') end
  for part = WAITING_SET, TAGS do set_expiry(part) end
  renewed = true
end

local function present_queue()
  local back_us = meta[SEEN] - queue_server
  if back_us - meta[AHEAD] > SET_BACK_US then meta[AHEAD] = back_us end
  meta[SEEN] = queue_now
  if queue_now >= meta[RENEWAL] then renew() end
end

local function close_queue()
  redis.call('SET', KEYS[BEFORE_QUEUE + META], struct.pack(META_FORM, unpack(meta, 1, META_LENGTH)), 'KEEPTTL')
  if renewed then set_expiry(META) end
  -- Being woken is for speed: a server that does not let us publish must not keep us from working.
  for _, worker in ipairs(wakes) do redis.pcall('PUBLISH', settings().wakes .. worker, '') end
end

local function next_id()
  meta[LAST] = math.max(meta[LAST] + 1, queue_now)
  return string.format('%016.0f', meta[LAST])
end

local function waiting_in()
  return meta[LINED] + meta[LINED + 1] + meta[LINED + 2] + meta[LINED + 3]
end

-- What was not in this part before.
local function put(part, score, name)
  redis.call('ZADD', KEYS[BEFORE_QUEUE + part], score, name)
  if meta[SIZE + part] == 0 then set_expiry(part) end
  meta[SIZE + part] = meta[SIZE + part] + 1
end

-- Into a part that is looked at when its first score is due.
local function schedule(part, score, name)
  put(part, score, name)
  if score < meta[FIRST + part] then meta[FIRST + part] = score end
end

local function remove(part, name)
  if meta[SIZE + part] == 0 then return 0 end
  local removed = redis.call('ZREM', KEYS[BEFORE_QUEUE + part], name)
  meta[SIZE + part] = meta[SIZE + part] - removed
  return removed
end

local function lease_name(id, turn)
  return id .. ':' .. turn
end

local function is_leased(id, turn)
  return redis.call('ZSCORE', KEYS[BEFORE_QUEUE + LEASES], lease_name(id, turn))
end

local function record_of(id)
  local packed = redis.call('HGET', KEYS[BEFORE_QUEUE + JOBS], id)
  return packed and cmsgpack.unpack(packed)
end

-- Of a job that is leased.
local function leased_job(id)
  local job = record_of(id)
  if job[STATE] == ACTIVE then return job end
  job[STATE], job[TURN], job[ATTEMPT] = ACTIVE, job[TURN] + 1, job[ATTEMPT] + 1
  return job
end

local function read_job(id)
  local job = record_of(id)
  if job and job[STATE] == WAITING and is_leased(id, job[TURN] + 1) then return leased_job(id) end
  return job
end

local function save_job(id, job)
  redis.call('HSET', KEYS[BEFORE_QUEUE + JOBS], id, cmsgpack.pack(job))
end

-- Does not save the job.
local function line(id, job)
  local priority = job[PRIORITY]
  job[STATE], job[READY] = WAITING, queue_now
  if job[TAG] == 0 then
    local field = priority .. ':' .. job[TENANT]
    local last = tonumber(redis.call('HGET', KEYS[BEFORE_QUEUE + TAGS], field) or 0)
    job[TAG] = math.max(meta[REACHED + priority], last) + 1
    redis.call('HSET', KEYS[BEFORE_QUEUE + TAGS], field, job[TAG])
  end
  redis.call('ZADD', KEYS[BEFORE_QUEUE + WAITING_SET], priority * SPAN + job[TAG], id)
  if waiting_in() == 0 then set_expiry(WAITING_SET) end
  meta[LINED + priority] = meta[LINED + priority] + 1
end

local function unline(id, job)
  redis.call('ZREM', KEYS[BEFORE_QUEUE + WAITING_SET], id)
  meta[LINED + job[PRIORITY]] = meta[LINED + job[PRIORITY]] - 1
end

-- Most jobs end at their first turn, and have left nothing behind but themselves.
local function is_at_first_turn(job)
  return job[TURN] == 0 and job[STATE] < ACTIVE or job[TURN] == 1 and job[STATE] == ACTIVE
end

local function forget(id, job)
  redis.call('HDEL', KEYS[BEFORE_QUEUE + JOBS], id)
  redis.call('HDEL', KEYS[BEFORE_QUEUE + DATA], id)
  if not is_at_first_turn(job) then
    redis.call('HDEL', KEYS[BEFORE_QUEUE + TEXTS], id)
    remove(ENDS, id)
    remove(DEAD_SET, id)
  end
  if job[KEY] ~= '' then
    meta[KEYED] = meta[KEYED] - redis.call('HDEL', KEYS[BEFORE_QUEUE + IDS_BY_KEY], job[KEY])
  end
end

local function end_job(id, job, as, text, keep_us)
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
  return tonumber(redis.call('ZRANGE', KEYS[BEFORE_QUEUE + part], 0, 0, 'WITHSCORES')[2])
end

-- So many that are due; they leave the part.
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
  for _, id in ipairs(take_due(ENDS, most)) do forget(id, record_of(id)) end
end

local function bring_back(dead_us)
  for _, id in ipairs(take_due(DELAYED_SET, MOST_AT_ONCE)) do
    local job = record_of(id)
    line(id, job)
    save_job(id, job)
  end
  for _, name in ipairs(take_due(LEASES, MOST_AT_ONCE)) do
    meta[LAPSED] = meta[LAPSED] + 1
    local id = string.sub(name, 1, ID_LENGTH)
    local job = leased_job(id)
    if job[CANCEL] == 1 then
      end_job(id, job, CANCELLED, '', dead_us)
    elseif job[ATTEMPT] < job[ATTEMPTS] then
      line(id, job)
      save_job(id, job)
    else
      end_job(id, job, DEAD, LAPSED_TEXT, dead_us)
    end
  end
end

local function park(worker, until_us)
  remove(PARKED, worker)
  put(PARKED, until_us, worker)
end

-- Those whose time is over are gone; the loop ends with them.
local function wake_one()
  while meta[SIZE + PARKED] > 0 do
    local first = redis.call('ZRANGE', KEYS[BEFORE_QUEUE + PARKED], 0, 0, 'WITHSCORES')
    if not first[1] then return end
    remove(PARKED, first[1])
    if tonumber(first[2]) > queue_now then
      wakes[#wakes + 1] = first[1]
      return
    end
  end
end

-- So many that are first in a priority.
local function first_of(priority, most)
  if meta[LINED + priority] == 0 then return {} end
  local before = 0
  for higher = 0, priority - 1 do before = before + meta[LINED + higher] end
  local last = before + math.min(most, meta[LINED + priority]) - 1
  return redis.call('ZRANGE', KEYS[BEFORE_QUEUE + WAITING_SET], before, last)
end

local function view_of(id)
  local job = read_job(id)
  if not job then return false end
  return {
    id, job[STATE], redis.call('HGET', KEYS[BEFORE_QUEUE + DATA], id), job[PRIORITY], job[TENANT], job[KEY],
    job[ATTEMPT], job[ATTEMPTS], queue_now - tonumber(id), job[PROGRESS],
    redis.call('HGET', KEYS[BEFORE_QUEUE + TEXTS], id) or '',
  }
end
