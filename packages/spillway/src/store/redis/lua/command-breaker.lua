-- Manual control of a breaker.
-- KEYS: breaker
-- ARGV: see include/breaker-state; command: isolate, release, trip or reset; holder (absent: all of
--       them); for_us (of a trip: 0 for as long as failures would); generation (of a trip: absent, or
--       the one of the call that found the reason)
-- reply: view
-- expiry: see include/breaker-state; an isolated one at least until it is not
--- @include breaker-tally
--- @include breaker-state
local spec = input.spec
local state = read_breaker(KEYS[1])
local before = state.version
local now = present(state, spec)
local command = input.command
if command == 'isolate' then
  state.isolations[input.holder] = now + input.for_us
  show(state, now)
elseif command == 'release' then
  if input.holder then state.isolations[input.holder] = nil else state.isolations = {} end
  show(state, now)
elseif command == 'trip' then
  local found = input.generation
  -- The pod knows a later generation from before the store lost its state.
  local current = found == state.generation or (found and state.kind == CLOSED and state.generation < found)
  if not found or current then
    local repeated = found and state.kind == HALF_OPEN
    open(state, spec, now)
    if input.for_us > 0 then
      local until_us = now + input.for_us
      state.open_until_us = repeated and max(state.open_until_us, until_us) or until_us
    end
  end
elseif command == 'reset' then
  state.openings = 0
  state.closed_at_us = 0
  move(state, CLOSED, now)
end
return keep(KEYS[1], input.name, state, spec, now, before)
