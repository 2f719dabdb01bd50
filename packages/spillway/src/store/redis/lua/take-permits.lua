-- Grants permits to a strict prefix of the costs, each of all limits or of none.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; wishes: in order, those in a row that cost the same as one group: how
--       many, then one number per limit
-- reply: granted, wait us, paused 0|1, now us, version, then for each limit its stamp, for each what
--        is left, for each the largest cost, then, if the pod's limits are out of date, the newest
-- expiry: lane and guard, as long as anything counts plus a margin; nothing is written on a refusal
--- @include counting
--- @include lane-state
local wishes = input.wishes
local granted = 0
local wait = 0

if lane.p > now then
  wait = lane.p - now
else
  for at = 1, #wishes, limit_count + 1 do
    local fit = wishes[at]
    for index = 1, limit_count do
      local cost = min(wishes[at + index], capacity(specs[index]))
      fit = how_many_fit(specs[index], counts[index], now, cost, fit)
    end
    for index = 1, limit_count do
      local cost = min(wishes[at + index], capacity(specs[index]))
      if cost > 0 and fit > 0 then charge(specs[index], counts[index], now, cost, fit) end
      if fit < wishes[at] and not fits(specs[index], counts[index], now, cost) then
        wait = max(wait, wait_us(specs[index], counts[index], now, cost), 1)
      end
    end
    granted = granted + fit
    if fit < wishes[at] then break end
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
    reply[at + 1], reply[at + 2] = spec[LIMIT], spec[WINDOW]
    reply[at + 3], reply[at + 4] = spec[BURST], spec[SLICES]
  end
end
if granted > 0 or changed then keep() end
return reply
