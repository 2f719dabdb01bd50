-- Folds a vendor's word into the lane: pauses it, and takes away what the vendor says is not there.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; then time of the call's permit (0: said by hand), throttled 0|1,
--       pause us (-1: unknown), base pause us, longest pause us, number of limits spoken of, and for
--       each: limit (from 1), remaining, reset us
-- reply: paused until (us), or 0
-- expiry: as in take-permits
--- @include counting
--- @include lane-state
local granted = tonumber(ARGV[argument])
local throttled = ARGV[argument + 1] == '1'
local pause = tonumber(ARGV[argument + 2])
local base_pause = tonumber(ARGV[argument + 3])
local longest_pause = tonumber(ARGV[argument + 4])
local spoken_of = tonumber(ARGV[argument + 5])

if granted > 0 then
  if granted < lane.f then
    if changed then keep() end
    return lane.p > now and lane.p or 0
  end
  lane.f = granted
end
if throttled then
  if pause < 0 then
    pause = base_pause * 2 ^ min(lane.g, 20)
    lane.g = lane.g + 1
  end
  lane.p = max(lane.p, now + min(pause, longest_pause))
elseif granted > 0 then
  lane.g = 0
end
for number = 0, spoken_of - 1 do
  local at = argument + 6 + 3 * number
  local index = tonumber(ARGV[at])
  local left = tonumber(ARGV[at + 1])
  local reset = tonumber(ARGV[at + 2])
  local more = remaining(specs[index], counts[index], now) - left
  if left == 0 then lane.p = max(lane.p, now + min(reset, longest_pause))
  elseif more > 0 then charge(specs[index], counts[index], now, more) end
end
keep()
return lane.p > now and lane.p or 0
