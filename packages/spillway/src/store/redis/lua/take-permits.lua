-- Grants permits to a strict prefix of the costs, each of all limits or of none.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; costs: one number per limit for each wish, one after the other
-- reply: granted, wait us, paused 0|1, now us, version, then for each limit its stamp, for each what
--        is left, for each the largest cost, then, if the pod's limits are out of date, the newest
-- expiry: lane and guard, as long as anything counts plus a margin; nothing is written on a refusal
--- @include counting
--- @include lane-state
local costs = input.costs
local granted = 0
local wait = 0

if lane.p > now then
  wait = lane.p - now
else
  for at = 0, #costs - 1, limit_count do
    wait = 0
    for index = 1, limit_count do
      local cost = min(costs[at + index], capacity(specs[index]))
      if not fits(specs[index], counts[index], now, cost) then
        wait = max(wait, wait_us(specs[index], counts[index], now, cost), 1)
      end
    end
    if wait > 0 then break end
    for index = 1, limit_count do
      local cost = min(costs[at + index], capacity(specs[index]))
      if cost > 0 then charge(specs[index], counts[index], now, cost) end
    end
    granted = granted + 1
  end
end

local reply = { granted, wait, lane.p > now and 1 or 0, now, guard.v }
for index = 1, limit_count do
  reply[5 + index] = stamp_of(specs[index], counts[index])
  reply[5 + limit_count + index] = remaining(specs[index], counts[index], now)
  reply[5 + 2 * limit_count + index] = capacity(specs[index])
end
if guard.v > version then
  for index = 1, limit_count do
    local spec = spec_stored(own_specs[index], guard)
    local at = #reply
    reply[at + 1], reply[at + 2] = spec.limit, spec.window
    reply[at + 3], reply[at + 4] = spec.burst, spec.slices
  end
end
if granted > 0 or changed then keep() end
return reply
