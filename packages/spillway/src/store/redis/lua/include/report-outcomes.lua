-- The whole of report-outcomes, for trips that it goes along with.
--- @include breaker-tally
--- @include breaker-state
local spec = input.spec
local state = read_breaker(KEYS[1])
local before, last_us = state.v, state.t
local now = present(state, spec)

local function end_probe(probe, kind)
  state.late[probe] = nil
  if not state.probes[probe] then return end
  state.probes[probe] = nil
  if kind == NOTHING then return end
  if kind == FAILURE or (kind == SLOW and spec[SLOW_RATE] > 0) then return open(state, spec, now) end
  state.w = state.w + 1
  if state.w >= spec[SUCCESSES] then close(state, now) end
end

local last = redis.call('GET', KEYS[2])
if last and tonumber(last) >= input.sequence then
  return tell(KEYS[1], input.name, state, spec, now, before, last_us)
end
redis.call('SET', KEYS[2], string.format('%.0f', input.sequence), 'PX', 300000)
local live = 1
if spec[QUORUM] > 1 then
  live = redis.call('ZCOUNT', KEYS[3], '(' .. string.format('%.0f', server), '+inf')
end
for _, probe in ipairs(input.probes) do end_probe(probe[1], probe[2]) end
if state.kind == CLOSED and state.g < input.generation then state.g = input.generation end
for _, outcome in ipairs(input.outcomes) do
  if state.kind ~= CLOSED or state.g ~= input.generation then break end
  count(state.tally, spec, input.pod, outcome[1], outcome[2], now)
  if is_tripped(state.tally, spec, live) then open(state, spec, now) end
end
return keep(KEYS[1], input.name, state, spec, now, before)
