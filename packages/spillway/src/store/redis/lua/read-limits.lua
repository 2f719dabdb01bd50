-- What is left and used of a lane's limits. Changes nothing.
-- KEYS: lane, guard
-- ARGV: see include/lane-state
-- reply: { now us, version, paused until us, {limit, used, remaining, …} }
--- @include counting
--- @include lane-state
local figures = {}
for index = 1, limit_count do
  figures[#figures + 1] = specs[index].limit
  figures[#figures + 1] = used(specs[index], counts[index], now)
  figures[#figures + 1] = remaining(specs[index], counts[index], now)
end
return { now, max(guard.v, version), lane.p > now and lane.p or 0, figures }
