-- Gives back what requests took from their levels. Twin of store/levels/check-levels.ts.
-- KEYS: the levels of all requests, each once
-- ARGV: as for check-levels, and after the cost of a request the time at which it was charged; 0 if that is
--       not known, and then nothing is given back to sliding windows
-- expiry: a level ends a second after nothing of it counts any more
local MARGIN_MS = 1000
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

--- @include server-time
--- @include level-window
local now = server_us()
local input = cjson.decode(ARGV[2])

local function refund_log(key, window, cost, charged_at)
  refund_window(window, cost, charged_at)
  local until_us = now + window_reset_us(window, now)
  redis.call('SET', key, pack_log(window.log), 'PXAT', floor(until_us / 1000) + MARGIN_MS)
end

local at, length = 1, #input
while at <= length do
  local level_count, cost, charged_at = input[at], input[at + 1], input[at + 2]
  at = at + 3
  for _ = 1, level_count do
    local key, limit, window, units = input[at], input[at + 1], input[at + 2], input[at + 3]
    local stored = redis.call('GET', KEYS[key])
    if stored and units == 0 then
      if charged_at > 0 then
        refund_log(KEYS[key], open_window(unpack_log(stored), limit, window, now), cost, charged_at)
      end
    elseif stored then
      local full = max(now, tonumber(stored) - ceil((min(cost, units) * window) / limit))
      redis.call('SET', KEYS[key], full, 'PXAT', floor(full / 1000) + MARGIN_MS)
    end
    at = at + 4
  end
end
return 0
