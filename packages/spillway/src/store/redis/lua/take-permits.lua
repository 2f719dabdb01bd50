-- Grants permits to a strict prefix of the costs, each of all limits or of none.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; then the number of costs, and one number per limit for each cost
-- reply: { granted, wait us, paused 0|1, now us, version, {stamps}, {remaining}, {newer limits} }
-- expiry: lane and guard, as long as anything counts plus a margin; nothing is written on a refusal
--- @include counting
--- @include lane-state
local cost_count = tonumber(ARGV[argument])
local granted = 0
local wait = 0

if lane.p > now then
  wait = lane.p - now
else
  local at = argument + 1
  for _ = 1, cost_count do
    wait = 0
    for index = 1, limit_count do
      local cost = tonumber(ARGV[at + index - 1])
      if not fits(specs[index], counts[index], now, cost) then
        wait = max(wait, wait_us(specs[index], counts[index], now, cost), 1)
      end
    end
    if wait > 0 then break end
    for index = 1, limit_count do
      local cost = tonumber(ARGV[at + index - 1])
      if cost > 0 then charge(specs[index], counts[index], now, cost) end
    end
    granted = granted + 1
    at = at + limit_count
  end
end

local stamps, left, newer = {}, {}, {}
for index = 1, limit_count do
  stamps[index] = stamp_of(specs[index], counts[index])
  left[index] = remaining(specs[index], counts[index], now)
  if guard.v > version then
    local spec = spec_stored(own_specs[index], guard)
    newer[#newer + 1] = spec.limit
    newer[#newer + 1] = spec.window
    newer[#newer + 1] = spec.burst
    newer[#newer + 1] = spec.slices
  end
end
if granted > 0 or changed then keep() end
return { granted, wait, lane.p > now and 1 or 0, now, guard.v, stamps, left, newer }
