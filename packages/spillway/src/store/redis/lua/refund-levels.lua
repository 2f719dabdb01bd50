-- Gives back what requests took from their token buckets. Twin of store/levels/check-levels.ts.
-- KEYS: the buckets of all requests, each once
-- ARGV: as for check-levels
-- expiry: a bucket ends a second after it is full again
local MARGIN_MS = 1000
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

--- @include server-time
local now = server_us()
local input = cjson.decode(ARGV[2])
local at, length = 1, #input
while at <= length do
  local level_count, cost = input[at], input[at + 1]
  at = at + 2
  for _ = 1, level_count do
    local key, limit, window, units = input[at], input[at + 1], input[at + 2], input[at + 3]
    local stored = redis.call('GET', KEYS[key])
    if stored then
      local full = max(now, tonumber(stored) - ceil((min(cost, units) * window) / limit))
      redis.call('SET', KEYS[key], full, 'PXAT', floor(full / 1000) + MARGIN_MS)
    end
    at = at + 4
  end
end
return 0
