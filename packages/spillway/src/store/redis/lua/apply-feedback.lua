-- Applies vendor feedback to the lane: pauses it, charges units that the vendor says are not left, and lowers limits
-- that learn.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; granted: time of the call's permit (0: by an operator); throttled;
--       pause us (-1: unknown); base and longest pause us; left: remaining units that the vendor named, as
--       { limit (from 1), remaining, reset us }; refused: with limits that learn, the refused call as costs, units
--       still booked, and stamps, each one number per limit
-- reply: paused until (us), or 0; the limit (from 1) that was learned, or 0; that limit as in force, or 0
-- expiry: as in take-permits
--- @include counting
--- @include lane-state
--- @include learn-from-feedback
local granted = input.granted
local pause = input.pause
local longest_pause = input.longest
local learned, holds = learn_from_feedback()
if learned > 0 or input.refused then changed = true end

local function reply()
  return { still_paused(), learned, learned > 0 and specs[learned][LIMIT] or 0 }
end

if granted > 0 then
  if granted < lane.f then
    if changed then keep() end
    return reply()
  end
  lane.f = granted
end
if input.throttled and not holds then
  if pause < 0 then
    pause = lane.p > now and 0 or input.base * 2 ^ min(lane.g, 20)
    if lane.p <= now then lane.g = lane.g + 1 end
  end
  lane.p = max(lane.p, now + min(pause, longest_pause))
elseif not input.throttled and granted > 0 then
  lane.g = 0
end
for _, word in ipairs(input.left) do
  local index, left, reset = word[1], word[2], word[3]
  if not specs[index][LEARN] then
    local more = remaining(specs[index], counts[index], now) - left
    if left == 0 and reset > 0 then lane.p = max(lane.p, now + min(reset, longest_pause))
    elseif more > 0 then charge(specs[index], counts[index], now, more) end
  end
end
keep()
return reply()
