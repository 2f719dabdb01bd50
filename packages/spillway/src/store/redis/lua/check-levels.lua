-- Charges each request's token buckets together, or none of them.
-- Twin of store/levels/check-levels.ts.
-- KEYS: the buckets of all requests, each once
-- ARGV: time (see include/server-time), then the requests as one JSON array of numbers, for each:
--       number of levels, cost, and for each level: key (from 1), limit, window us, burst
-- reply: for each request: refused by (level from 1, 0 allowed), wait us, tightest level,
--        remaining, reset us
-- expiry: a bucket ends a second after it is full again
local MARGIN_MS = 1000
local LEVEL_FIELDS = 4
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

--- @include server-time
local now = server_us()
local input = cjson.decode(ARGV[2])
local full_at = redis.call('MGET', unpack(KEYS))
for index = 1, #KEYS do full_at[index] = tonumber(full_at[index] or 0) end
local charged = {}

-- The level described at this place: its key; when its bucket is full again as things are; how long
-- the cost takes to flow back; how far ahead of now the bucket may be charged. Charges are rounded up,
-- so that is as much as `burst` charges of one unit take, but less than one unit more than a full bucket.
local function level_at(at, cost)
  local key, limit, window, units = input[at], input[at + 1], input[at + 2], input[at + 3]
  local burst = ceil((units * window) / limit)
  local full = max(full_at[key], now)
  if full - now > burst + SET_BACK_US then full = now + burst end
  local capacity = min(units * ceil(window / limit), ceil(((units + 1) * window) / limit) - 1)
  return key, full, ceil((min(cost, units) * window) / limit), capacity
end

local function left_at(at, full, capacity)
  return max(0, floor(((capacity - (full - now)) * input[at + 1]) / input[at + 2]))
end

-- Which level keeps the request waiting longest, and how long.
local function refusal(first, level_count, cost)
  local refused_by, wait = 0, 0
  for level = 1, level_count do
    local _, full, cost_us, capacity = level_at(first + (level - 1) * LEVEL_FIELDS, cost)
    local excess = full + cost_us - now - capacity
    if excess > wait then refused_by, wait = level, excess end
  end
  return refused_by, wait
end

-- Answers with the level that has least left, how much, and until when it has everything again.
local function charge_all(first, level_count, cost)
  local tightest, remaining, reset = 0, 9007199254740991, 0
  for level = 1, level_count do
    local at = first + (level - 1) * LEVEL_FIELDS
    local key, full, cost_us, capacity = level_at(at, cost)
    full = full + cost_us
    full_at[key] = full
    charged[key] = true
    local left = left_at(at, full, capacity)
    if left < remaining then tightest, remaining, reset = level, left, full - now end
  end
  return tightest, remaining, reset
end

local reply, written = {}, 0
local at, length = 1, #input
while at <= length do
  local level_count, cost, first = input[at], input[at + 1], at + 2
  local refused_by, wait = refusal(first, level_count, cost)
  local tightest, remaining, reset
  if refused_by == 0 then
    tightest, remaining, reset = charge_all(first, level_count, cost)
  else
    local refusing = first + (refused_by - 1) * LEVEL_FIELDS
    local _, full, _, capacity = level_at(refusing, cost)
    tightest, remaining, reset = refused_by, left_at(refusing, full, capacity), full - now
  end
  reply[written + 1], reply[written + 2], reply[written + 3] = refused_by, wait, tightest
  reply[written + 4], reply[written + 5] = remaining, reset
  written = written + 5
  at = first + level_count * LEVEL_FIELDS
end

-- PXAT, and a number for a value: what the server would make of anything else, and copy to do so.
for index = 1, #KEYS do
  if charged[index] then
    local full = full_at[index]
    redis.call('SET', KEYS[index], full, 'PXAT', floor(full / 1000) + MARGIN_MS)
  end
end
return reply
