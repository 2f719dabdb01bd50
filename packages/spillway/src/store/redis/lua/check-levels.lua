-- Charges all levels of each request together, or none of them.
-- Twin of store/levels/check-levels.ts.
-- KEYS: the levels of all requests, each once
-- ARGV: time (see include/server-time), then the requests as one JSON array of numbers, for each:
--       number of levels, cost, and for each level: key (from 1), limit, window us, burst (0: a sliding
--       window, otherwise a token bucket)
-- reply: for each request: refused by (level from 1, 0 allowed), wait us, tightest level,
--        remaining, reset us, and if allowed for each level when its bucket is full again (0: a window);
--        after all of them the time
-- expiry: a level expires one second after all of its units are available again
local MARGIN_MS = 1000
local LEVEL_FIELDS = 4
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

--- @include server-time
--- @include level-window
local now = server_us()
local input = cjson.decode(ARGV[2])
local stored = redis.call('MGET', unpack(KEYS))
-- By key: when a token bucket is full again; the log of a sliding window, and its window when it was last changed.
local full_at, logs, windows = {}, {}, {}
local charged = {}

local function is_window(at)
  return input[at + 3] == 0
end

-- The token bucket described at this place: its key; when it is full again as things are; how long
-- the cost takes to flow back; how far ahead of now it may be charged. Charges are rounded up,
-- so that is as much as `burst` charges of one unit take, but less than one unit more than a full bucket.
local function bucket_at(at, cost)
  local key, limit, window, units = input[at], input[at + 1], input[at + 2], input[at + 3]
  if not full_at[key] then full_at[key] = tonumber(stored[key] or 0) end
  local burst = ceil((units * window) / limit)
  local full = max(full_at[key], now)
  if full - now > burst + SET_BACK_US then
    -- The clock was set back. Stored even if the request is refused; otherwise the bucket would stay empty until the
    -- clock has caught up.
    full = now + burst
    full_at[key], charged[key] = full, true
  end
  local capacity = min(units * ceil(window / limit), ceil(((units + 1) * window) / limit) - 1)
  return key, full, ceil((min(cost, units) * window) / limit), capacity
end

local function left_at(at, full, capacity)
  return max(0, floor(((capacity - (full - now)) * input[at + 1]) / input[at + 2]))
end

local function window_at(at)
  local key = input[at]
  if not logs[key] then logs[key] = unpack_log(stored[key]) end
  return open_window(logs[key], input[at + 1], input[at + 2], now)
end

local function save_window(key, window)
  logs[key], windows[key] = window.log, window.window_us
  charged[key] = true
end

-- Which level keeps the request waiting longest, and how long.
local function refusal(first, level_count, cost)
  local refused_by, wait = 0, 0
  for level = 1, level_count do
    local at, excess = first + (level - 1) * LEVEL_FIELDS, nil
    if is_window(at) then
      excess = window_wait_us(window_at(at), cost, now)
    else
      local _, full, cost_us, capacity = bucket_at(at, cost)
      excess = full + cost_us - now - capacity
    end
    if excess > wait then refused_by, wait = level, excess end
  end
  return refused_by, wait
end

-- Units that a level has left, and until when it has everything again. If the request is granted, it is charged.
local function state_at(at, cost, granted)
  local key = input[at]
  if is_window(at) then
    local window = window_at(at)
    if granted then charge_window(window, cost) end
    if granted or window.rebased then save_window(key, window) end
    return max(0, window.limit - window.units), window_reset_us(window, now)
  end
  local _, full, cost_us, capacity = bucket_at(at, cost)
  if granted then
    full = full + cost_us
    full_at[key] = full
    charged[key] = true
  end
  return left_at(at, full, capacity), full - now
end

-- Answers with the level that has least left, or that refused.
local function charge_all(first, level_count, cost, refused_by)
  local tightest, remaining, reset = 0, 9007199254740991, 0
  local granted = refused_by == 0
  for level = 1, level_count do
    local left, reset_us = state_at(first + (level - 1) * LEVEL_FIELDS, cost, granted)
    local counts = level == refused_by
    if granted then counts = left < remaining end
    if counts then tightest, remaining, reset = level, left, reset_us end
  end
  return tightest, remaining, reset
end

local reply, written = {}, 0
local at, length = 1, #input
while at <= length do
  local level_count, cost, first = input[at], input[at + 1], at + 2
  local refused_by, wait = refusal(first, level_count, cost)
  local tightest, remaining, reset = charge_all(first, level_count, cost, refused_by)
  reply[written + 1], reply[written + 2], reply[written + 3] = refused_by, wait, tightest
  reply[written + 4], reply[written + 5] = remaining, reset
  written = written + 5
  if refused_by == 0 then
    for level = 1, level_count do
      reply[written + level] = full_at[input[first + (level - 1) * LEVEL_FIELDS]] or 0
    end
    written = written + level_count
  end
  at = first + level_count * LEVEL_FIELDS
end
reply[written + 1] = now

-- PXAT and a number as the value, because the server would convert other forms to these and copy them.
for index = 1, #KEYS do
  if charged[index] then
    local log = logs[index]
    if log then
      local until_ms = floor((log[#log - 1] + windows[index]) / 1000) + MARGIN_MS
      redis.call('SET', KEYS[index], pack_log(log), 'PXAT', until_ms)
    else
      local full = full_at[index]
      redis.call('SET', KEYS[index], full, 'PXAT', floor(full / 1000) + MARGIN_MS)
    end
  end
end
return reply
