-- Charges each request's token buckets together, or none of them. Twin of store/levels/check-levels.ts.
-- KEYS: the buckets of all requests, each once
-- ARGV: time (see include/server-time), then the requests as
--       one JSON array of numbers, for each: number of levels, cost, and for each level: key (from 1),
--       limit, window us, burst
-- reply: for each request: refused by (level from 1, 0 allowed), wait us, tightest level, remaining,
--        reset us
-- expiry: a bucket ends a second after it is full again
local SET_BACK_US = 5000000
local MARGIN_MS = 1000
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

--- @include server-time
local now = server_us()
local input = cjson.decode(ARGV[2])
local stored = redis.call('MGET', unpack(KEYS))
local full_at = {}
for index = 1, #KEYS do full_at[index] = tonumber(stored[index] or 0) end

local changed = {}
local reply = {}
local at, length = 1, #input
while at <= length do
  local level_count = input[at]
  local cost = input[at + 1]
  at = at + 2
  local refused_by, wait = 0, 0
  local keys, nexts, costs, bursts, rates = {}, {}, {}, {}, {}
  for level = 1, level_count do
    local key, limit, window, burst_units = input[at], input[at + 1], input[at + 2], input[at + 3]
    local burst = ceil((burst_units * window) / limit)
    at = at + 4
    local cost_us = ceil((min(cost, burst_units) * window) / limit)
    local full = max(full_at[key], now)
    if full - now > burst + SET_BACK_US then full = now + burst end
    local excess = full + cost_us - now - burst
    if excess > wait then
      wait = excess
      refused_by = level
    end
    keys[level], nexts[level], costs[level] = key, full + cost_us, cost_us
    bursts[level], rates[level] = burst, { limit, window }
  end
  local remaining, reset, tightest = 9007199254740991, 0, 0
  for level = 1, level_count do
    local full = nexts[level]
    if refused_by == 0 then
      full_at[keys[level]] = full
      changed[keys[level]] = true
    else
      full = full - costs[level]
    end
    local free = bursts[level] - (full - now)
    local left = max(0, floor((free * rates[level][1]) / rates[level][2]))
    local told
    if refused_by == 0 then told = left < remaining else told = level == refused_by end
    if told then remaining, reset, tightest = left, full - now, level end
  end
  local count = #reply
  reply[count + 1], reply[count + 2], reply[count + 3] = refused_by, wait, tightest
  reply[count + 4], reply[count + 5] = remaining, reset
end

for index in pairs(changed) do
  local life = ceil((full_at[index] - now) / 1000) + MARGIN_MS
  redis.call('SET', KEYS[index], string.format('%.0f', full_at[index]), 'PX', life)
end
return reply
