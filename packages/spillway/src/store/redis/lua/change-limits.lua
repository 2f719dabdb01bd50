-- Changes the limits of a guard for good, or one of them for a while.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; then the id to override (empty: the limits given are the new ones),
--       its limit, for how long (us; 0 ends the override)
-- reply: the version in force
-- expiry: guard, a day for changed limits, an override's end plus a margin
--- @include counting
--- @include lane-state
local id = ARGV[argument]
if id ~= '' then
  local limit = tonumber(ARGV[argument + 1])
  local for_us = tonumber(ARGV[argument + 2])
  guard.overrides[id] = for_us > 0 and { limit, now + for_us } or nil
else
  guard.v = max(guard.v, version) + 1
  for index = 1, limit_count do
    local own = own_specs[index]
    guard.limits[own.id] = { own.limit, own.window, own.burst, own.slices }
  end
end
save_guard()
return guard.v
