-- What is left and used of a lane's limits. Changes nothing.
-- KEYS: lane, guard, the guard's reports
-- ARGV: see include/lane-state
-- reply: { now us, version, paused until us, {limit, used, remaining, …},
--          requests in the last minute }
--- @include counting
--- @include lane-state
local figures = {}
for index = 1, limit_count do
  figures[#figures + 1] = specs[index][LIMIT]
  figures[#figures + 1] = used(specs[index], counts[index], now)
  figures[#figures + 1] = remaining(specs[index], counts[index], now)
end
local requests = 0
local reports = redis.call('HVALS', KEYS[3])
for index = 1, #reports do
  local count, at = string.match(reports[index], '^(%d+):(%d+)$')
  if tonumber(at) > now - 60000000 then requests = requests + tonumber(count) end
end
return { now, max(guard.v, version), still_paused(), figures, requests }
