-- Reads breakers of one guard, and renews the leases of probes that are still running.
-- KEYS: breakers of one guard that have the same spec
-- ARGV: see include/breaker-state; spec; breakers: for each { name, probes to renew }
-- reply: for each its view
-- expiry: see include/breaker-state
--- @include breaker-tally
--- @include breaker-state
local spec = input.spec
local reply = {}
for index = 1, #KEYS do
  local name, renew = unpack(input.breakers[index])
  local state = read_breaker(KEYS[index])
  local before, last = state.version, state.time_us
  local now = present(state, spec)
  for _, probe in ipairs(renew) do
    if state.probes[probe] then state.probes[probe] = now + spec[PROBE_LEASE] end
    if state.late_probes[probe] then state.late_probes[probe] = now + spec[PROBE_LEASE] end
  end
  reply[index] = read_reply(KEYS[index], name, state, spec, now, before, last)
end
return reply
