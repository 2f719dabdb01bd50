-- Pauses a lane or all lanes of a guard for an operator, or ends a pause, also one the vendor asked for.
-- KEYS: lane, guard
-- ARGV: see include/lane-state, without limits; whole: all lanes; for how long (us; 0 ends it)
-- reply: paused until (us), or 0
-- expiry: as in take-permits
--- @include counting
--- @include lane-state
local for_us = input.for_us
local state = input.whole and guard or lane
state.p = for_us > 0 and max(state.p, now + for_us) or 0
if input.whole then
  save_guard()
else
  if for_us == 0 then lane.g = 0 end
  save_lane()
end
return still_paused()
