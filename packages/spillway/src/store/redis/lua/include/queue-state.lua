-- The state of a job queue. With include/queue-moves the twin of store/queue/queue-state.ts.
-- KEYS: thirteen of the queue, after those that the script names (BEFORE_QUEUE of them)
-- ARGV: time (see include/server-time), then one JSON object with what most requests do not use: the fields
--       that each script names, life (us) of a queue without requests, and the prefix of the channels that
--       wake workers
-- expiry: all keys of a queue together, one life or a little more after the last request. If lives differ, the
--         longest of the pods that added jobs counts
-- Waiting jobs are in one sorted set, priorities one after the other, inside a priority by tag.
-- A lease is a record of its own, named by the job's id and turn, and the job's record stays unchanged. So a
-- job that is reserved and done is not written in between, nor read again.
-- Keys may be lost one by one (evicted, deleted): a job without a record is dropped, and counts are corrected
-- where that shows. A record that cannot be read becomes a dead letter.
local META, WAITING_SET, DELAYED_SET, LEASES, ENDS, DEAD_SET, PARKED = 1, 2, 3, 4, 5, 6, 7
local JOBS, DATA, TEXTS, IDS_BY_KEY, TAGS = 8, 9, 10, 11, 12
-- 'c:' and a tenant: how many open jobs it has; 'j:' and the id of an open job: its tenant. The second is needed
-- when the job's own record is lost. Jobs without a tenant are not in it.
local TENANTS = 13
-- Fields of the queue's own record, an array: those of the twin; when the expiry is renewed (queue time); the
-- expiry (server ms); and the number of jobs with something stored apart: long data, a key, or a tenant.
local SEEN, AHEAD, LAST, IS_PAUSED, ALARM, BLOCKED, EXPIRED_LEASES, RENEWAL, EXPIRY, APART = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- Four of each, one per priority: the tag that was reached, and the number of waiting jobs.
local REACHED, LINED = 11, 15
-- After these by part: how many are in it, and a time before which none of its scores is. To save calls.
local SIZE, FIRST = 16, 21
local META_FORM = '<dddddddddddddddddddddddddd'
local META_LENGTH = 26
-- Of a job, an array, too:
local STATE, PRIORITY, TAG, ATTEMPT, ATTEMPTS, TURN, READY = 1, 2, 3, 4, 5, 6, 7
-- Data is there if it is short, else apart.
local DEADLINE, TENANT, KEY, COST, PROGRESS, CANCEL, SHORT_DATA = 8, 9, 10, 11, 12, 13, 14
-- Turns that did not count as an attempt.
local UNCOUNTED = 15
local WAITING, DELAYED, ACTIVE, DONE, DEAD, CANCELLED = 0, 1, 2, 3, 4, 5
local PRIORITIES = 4
local ID_LENGTH = 16
-- Room for the tags of one priority.
local SPAN = 281474976710656
-- In the year 2255.
local NEVER = 9000000000000000
local UNREADABLE_TEXT = 'its record in the store cannot be read'

--- @include server-time
local decoded
local function settings()
  decoded = decoded or cjson.decode(ARGV[2])
  return decoded
end

local function count_lined(counted)
  for priority = 0, PRIORITIES - 1 do
    local below = string.format('(%.0f', (priority + 1) * SPAN)
    counted[LINED + priority] = redis.call('ZCOUNT', KEYS[BEFORE_QUEUE + WAITING_SET], priority * SPAN, below)
  end
end

local function count_parts(counted)
  count_lined(counted)
  for part = DELAYED_SET, PARKED do counted[SIZE + part] = redis.call('ZCARD', KEYS[BEFORE_QUEUE + part]) end
  for part = DELAYED_SET, ENDS do counted[FIRST + part] = counted[SIZE + part] > 0 and 0 or NEVER end
  counted[APART] = 0
  for _, part in ipairs({ DATA, IDS_BY_KEY, TENANTS }) do
    counted[APART] = counted[APART] + redis.call('HLEN', KEYS[BEFORE_QUEUE + part])
  end
end

-- A new queue, or one whose first key was lost: the other keys say how many jobs there are.
local function new_meta()
  local new = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NEVER, NEVER, NEVER }
  if redis.call('HLEN', KEYS[BEFORE_QUEUE + JOBS]) > 0 then count_parts(new) end
  return new
end

local function stored_meta()
  local packed = redis.call('GET', KEYS[BEFORE_QUEUE + META])
  if not packed or #packed ~= struct.size(META_FORM) then return nil end
  local read = { struct.unpack(META_FORM, packed) }
  for index = 1, META_LENGTH do
    if not (read[index] >= 0 and read[index] <= NEVER) then return nil end
  end
  return read
end

local meta = stored_meta() or new_meta()
local queue_server = server_us()
local queue_now = math.max(meta[SEEN], queue_server + meta[AHEAD])
local renewed = false
local wakes = {}

local function set_expiry(part)
  redis.call('PEXPIREAT', KEYS[BEFORE_QUEUE + part], meta[EXPIRY])
end

-- Pods may give it different lives: a shorter one takes nothing away.
-- Hashes are never empty, so that they need no expiry when something comes into them.
local function renew()
  local life = settings().life
  meta[RENEWAL] = queue_now + life / 10
  meta[EXPIRY] = math.max(meta[EXPIRY], math.ceil((queue_server + life * 1.1) / 1000))
  for part = JOBS, TENANTS do redis.call('HSET', KEYS[BEFORE_QUEUE + part], '', '') end
  for part = WAITING_SET, TENANTS do set_expiry(part) end
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
  -- A wake-up only saves time, so the script continues if the server forbids PUBLISH.
  for _, worker in ipairs(wakes) do redis.pcall('PUBLISH', settings().wakes .. worker, '') end
end

local function waiting_in()
  return meta[LINED] + meta[LINED + 1] + meta[LINED + 2] + meta[LINED + 3]
end

-- Adds a name that is not in this part yet.
local function put(part, score, name)
  redis.call('ZADD', KEYS[BEFORE_QUEUE + part], score, name)
  if meta[SIZE + part] == 0 then set_expiry(part) end
  meta[SIZE + part] = meta[SIZE + part] + 1
end

-- Adds a name to a part that is processed when its first score is due.
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

local function is_count(value)
  return type(value) == 'number' and value >= 0 and value <= NEVER
end

local function is_readable(job)
  if type(job) ~= 'table' then return false end
  for field = STATE, DEADLINE do
    if not is_count(job[field]) then return false end
  end
  if job[STATE] > CANCELLED or job[STATE] % 1 > 0 then return false end
  if job[PRIORITY] >= PRIORITIES or job[PRIORITY] % 1 > 0 then return false end
  for _, field in ipairs({ TENANT, KEY, PROGRESS }) do
    if type(job[field]) ~= 'string' then return false end
  end
  if job[COST] then
    if type(job[COST]) ~= 'table' then return false end
    for _, units in pairs(job[COST]) do
      if not is_count(units) then return false end
    end
  end
  if type(job[SHORT_DATA]) ~= 'string' and job[SHORT_DATA] ~= false then return false end
  return is_count(job[CANCEL]) and is_count(job[UNCOUNTED])
end

-- Replaces a record that cannot be read by a dead one, with the tenant that is known.
local function unreadable(id)
  local tenant = redis.call('HGET', KEYS[BEFORE_QUEUE + TENANTS], 'j:' .. id) or ''
  local is_long = redis.call('HGET', KEYS[BEFORE_QUEUE + DATA], id)
  return { DEAD, 0, 0, 0, 1, 0, 0, 0, tenant, '', false, '', 0, not is_long and 'null', 0, unreadable = true }
end

local function record_of(id)
  local packed = redis.call('HGET', KEYS[BEFORE_QUEUE + JOBS], id)
  if not packed then return nil end
  local ok, job = pcall(cmsgpack.unpack, packed)
  if not ok or not is_readable(job) then return unreadable(id) end
  return job
end

local function data_of(id, job)
  return job[SHORT_DATA] or redis.call('HGET', KEYS[BEFORE_QUEUE + DATA], id)
end

local function remove_waiting(id, job)
  redis.call('ZREM', KEYS[BEFORE_QUEUE + WAITING_SET], id)
  meta[LINED + job[PRIORITY]] = meta[LINED + job[PRIORITY]] - 1
end

-- The first `most` jobs of a priority.
local function first_of(priority, most)
  if meta[LINED + priority] == 0 then return {} end
  local before = 0
  for higher = 0, priority - 1 do before = before + meta[LINED + higher] end
  local last = before + math.min(most, meta[LINED + priority]) - 1
  -- The usual start is passed as the text '0', because converting a number takes time.
  return redis.call(
    'ZRANGE', KEYS[BEFORE_QUEUE + WAITING_SET], before == 0 and '0' or before, last == 0 and '0' or last
  )
end
