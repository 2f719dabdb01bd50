-- Used and remaining units of a lane's limits, and how long one unit has to wait. Changes nothing.
-- KEYS: lane, guard, the guard's reports
-- ARGV: see include/lane-state
-- reply: { now us, version, paused until us, {limit, used, remaining, wait us, limit as configured, …},
--          requests in the last minute }
--- @include counting
--- @include lane-state
local figures = {}
for index = 1, limit_count do
  local spec, count = specs[index], counts[index]
  figures[#figures + 1] = spec[LIMIT]
  figures[#figures + 1] = used(spec, count, now)
  figures[#figures + 1] = remaining(spec, count, now)
  figures[#figures + 1] = fits(spec, count, now, 1) and 0 or max(1, wait_us(spec, count, now, 1))
  figures[#figures + 1] = spec_in_force(own_specs[index], guard, now)[LIMIT]
end
local requests = 0
local reports = redis.call('HVALS', KEYS[3])
for index = 1, #reports do
  local count, at = string.match(reports[index], '^(%d+):(%d+)$')
  if tonumber(at) > now - 60000000 then requests = requests + tonumber(count) end
end
return { now, max(guard.v, version), still_paused(), figures, requests }
