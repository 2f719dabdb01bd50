-- Applies vendor feedback to the lane: pauses it, and charges units that the vendor says are not left.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; granted: time of the call's permit (0: by an operator); throttled;
--       pause us (-1: unknown); base and longest pause us; left: remaining units that the vendor named, as
--       { limit (from 1), remaining, reset us }
-- reply: paused until (us), or 0
-- expiry: as in take-permits
--- @include counting
--- @include lane-state
local granted = input.granted
local pause = input.pause
local longest_pause = input.longest

if granted > 0 then
  if granted < lane.f then
    if changed then keep() end
    return still_paused()
  end
  lane.f = granted
end
if input.throttled then
  if pause < 0 then
    pause = lane.p > now and 0 or input.base * 2 ^ min(lane.g, 20)
    if lane.p <= now then lane.g = lane.g + 1 end
  end
  lane.p = max(lane.p, now + min(pause, longest_pause))
elseif granted > 0 then
  lane.g = 0
end
for _, word in ipairs(input.left) do
  local index, left, reset = word[1], word[2], word[3]
  local more = remaining(specs[index], counts[index], now) - left
  if left == 0 and reset > 0 then lane.p = max(lane.p, now + min(reset, longest_pause))
  elseif more > 0 then charge(specs[index], counts[index], now, more) end
end
keep()
return still_paused()
