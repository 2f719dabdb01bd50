-- Changes the limits of a guard for good, or one of them for a while, and wakes all waiting pods.
-- KEYS: lane, guard
-- ARGV: see include/lane-state; id to override (empty: the limits given are the new ones), its
--       limit, for how long (us; 0 ends the override); channel and text of the message to all pods
-- reply: the version in force
-- expiry: guard, a day for changed limits, an override's end plus a margin
--- @include counting
--- @include lane-state
local id = input.id
if id ~= '' then
  guard.overrides[id] = input.for_us > 0 and { input.limit, now + input.for_us, now } or nil
else
  guard.v = max(guard.v, version) + 1
  for index = 1, limit_count do
    local own = own_specs[index]
    guard.limits[own[ID]] = { own[LIMIT], own[WINDOW], own[BURST], own[SLICES] }
  end
end
save_guard()
redis.call('PUBLISH', input.channel, input.text)
return guard.v
