-- Returns the state of breakers, and renews the leases of running probes.
-- KEYS: breakers of one guard
-- ARGV: see include/breaker-state; breakers: for each { spec, name, probes to renew }
-- reply: for each its view
-- expiry: see include/breaker-state
--- @include breaker-tally
--- @include breaker-state
local reply = {}
for index = 1, #KEYS do
  local spec, name, renew = unpack(input.breakers[index])
  local state = read_breaker(KEYS[index])
  local before, last = state.version, state.time_us
  local now = present(state, spec)
  for _, probe in ipairs(renew) do
    if state.probes[probe] then state.probes[probe] = now + spec[PROBE_LEASE] end
    if state.late[probe] then state.late[probe] = now + spec[PROBE_LEASE] end
  end
  reply[index] = tell(KEYS[index], name, state, spec, now, before, last)
end
return reply
