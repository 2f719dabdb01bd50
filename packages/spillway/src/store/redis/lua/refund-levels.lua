-- Gives back what requests took from their levels that never started. Twin of store/levels/refund-levels.ts.
-- KEYS: the levels of all requests, each once, then for each of them the log of its refunds
-- ARGV: as for check-levels, and after the cost of a request the time at which it was charged; after the burst
--       of a level, when it was full again after that
-- reply: 0
-- expiry: a level ends a second after nothing of it counts any more, a log of refunds likewise
local MARGIN_MS = 1000
local PARTS = 16
local LEVEL_FIELDS = 5
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

--- @include server-time
--- @include level-window
local now = server_us()
local input = cjson.decode(ARGV[2])
local level_keys = #KEYS / 2

local function save(key, value, until_us)
  redis.call('SET', key, value, 'PXAT', floor(until_us / 1000) + MARGIN_MS)
end

local function refund_window_at(key, window, cost, charged_at)
  refund_window(window, cost, charged_at)
  save(key, pack_log(window.log), now + window_reset_us(window, now))
end

-- The refunds of a bucket that still matter, and their sum since a time.
local function open_refunds(key, capacity, since_us)
  local stored, log, sum = unpack_log(redis.call('GET', key)), {}, 0
  for index = 1, #stored, 2 do
    if stored[index] > now - capacity then
      log[#log + 1] = stored[index]
      log[#log + 1] = stored[index + 1]
      if stored[index] > since_us then sum = sum + stored[index + 1] end
    end
  end
  return log, sum
end

local function refund_bucket(key, at, cost, charged_at)
  local limit, window, units, own_full = input[at + 1], input[at + 2], input[at + 3], input[at + 4]
  local full = tonumber(redis.call('GET', KEYS[key]) or 0)
  local capacity = min(units * ceil(window / limit), ceil(((units + 1) * window) / limit) - 1)
  local log, refunded = open_refunds(KEYS[level_keys + key], capacity, charged_at)
  local cost_us = ceil((min(cost, units) * window) / limit)
  local back = min(cost_us, full - now, own_full - refunded - now)
  if back <= 0 then return end
  save(KEYS[key], full - back, full - back)
  local part_us = ceil(capacity / PARTS)
  local end_us = (floor(now / part_us) + 1) * part_us
  if log[#log - 1] == end_us then
    log[#log] = log[#log] + back
  else
    log[#log + 1] = end_us
    log[#log + 1] = back
  end
  save(KEYS[level_keys + key], pack_log(log), end_us + capacity)
end

local at, length = 1, #input
while at <= length do
  local level_count, cost, charged_at = input[at], input[at + 1], input[at + 2]
  at = at + 3
  for _ = 1, level_count do
    local key, limit, window, units = input[at], input[at + 1], input[at + 2], input[at + 3]
    if units == 0 then
      local stored = redis.call('GET', KEYS[key])
      if stored then
        local open = open_window(unpack_log(stored), limit, window, now)
        refund_window_at(KEYS[key], open, cost, charged_at)
      end
    elseif charged_at <= now then
      -- Otherwise the clock was set back since the charge.
      refund_bucket(key, at, cost, charged_at)
    end
    at = at + LEVEL_FIELDS
  end
end
return 0
