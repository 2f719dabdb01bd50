-- Grants probes of a half-open breaker, as many as are free in the whole fleet.
-- KEYS: breaker
-- ARGV: see include/breaker-state; probes: names for those wanted
-- reply: granted, then the view
-- expiry: see include/breaker-state
--- @include breaker-tally
--- @include breaker-state
local spec = input.spec
local state = read_breaker(KEYS[1])
local before = state.version
local now = present(state, spec)
local granted = 0
if state.kind == HALF_OPEN and not next(state.isolations) then
  granted = min(free_probes(state, spec), #input.probes)
  for index = 1, granted do state.probes[input.probes[index]] = now + spec[PROBE_LEASE] end
end
local view = keep(KEYS[1], input.name, state, spec, now, before)
table.insert(view, 1, granted)
return view
