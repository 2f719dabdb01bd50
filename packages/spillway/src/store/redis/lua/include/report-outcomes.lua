-- The body of report-outcomes, which other scripts include as well.
--- @include breaker-conditions
--- @include breaker-state
local spec = input.spec
local state = read_breaker(KEYS[1])
local before, last_us = state.version, state.time_us
local now = present(state, spec)

local DECIDING_FAILURES, HIGHEST_PROBE_RATE = 2, 0.5

local function probes_fail()
  local failed = state.failed_probes
  if failed < min(DECIDING_FAILURES, spec[SUCCESSES]) then return false end
  local rate = spec[FAILURE_RATE] > 0 and spec[FAILURE_RATE] or HIGHEST_PROBE_RATE
  return failed / (state.successes + failed) >= min(rate, HIGHEST_PROBE_RATE)
end

local function end_probe(probe, kind)
  state.late_probes[probe] = nil
  if not state.probes[probe] then return end
  state.probes[probe] = nil
  if kind == NOTHING then return end
  if kind == FAILURE or (kind == SLOW and spec[SLOW_RATE] > 0) then
    state.failed_probes = state.failed_probes + 1
    if probes_fail() then open(state, spec, now) end
    return
  end
  state.successes = state.successes + 1
  if state.successes >= spec[SUCCESSES] then close(state, now) end
end

local last = redis.call('GET', KEYS[2])
if last and tonumber(last) >= input.sequence then
  return read_reply(KEYS[1], input.name, state, spec, now, before, last_us)
end
redis.call('SET', KEYS[2], string.format('%.0f', input.sequence), 'PX', 300000)
local live = 1
if spec[QUORUM] > 1 then
  live = redis.call('ZCOUNT', KEYS[3], '(' .. string.format('%.0f', server), '+inf')
end
for _, probe in ipairs(input.probes) do end_probe(probe[1], probe[2]) end
if state.kind == CLOSED and state.generation < input.generation then
  state.generation = input.generation
end

local function is_current()
  return state.kind == CLOSED and state.generation == input.generation
end

local in_flight, in_flight_us = unpack(input.in_flight or { 0, 0 })
local later = 0
for _, outcome in ipairs(input.outcomes) do
  if not is_repeated(outcome[1]) then later = later + outcome[2] end
end
if is_current() then
  set_in_flight(state.tally, input.pod, in_flight, later, in_flight_us, now)
  set_hung(state.tally, input.pod, input.hung, in_flight_us, now)
end
for _, outcome in ipairs(input.outcomes) do
  if not is_current() then break end
  if not is_repeated(outcome[1]) then later = later - outcome[2] end
  set_in_flight(state.tally, input.pod, in_flight, later, in_flight_us, now)
  count(state.tally, spec, input.pod, outcome, now)
  if is_tripped(state.tally, spec, live, now) then open(state, spec, now) end
end
if is_current() and is_tripped(state.tally, spec, live, now) then open(state, spec, now) end
return keep(KEYS[1], input.name, state, spec, now, before)
