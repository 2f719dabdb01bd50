-- The shared state of a breaker, and how it is brought to the present. Twin of
-- store/breaker/breaker-state.ts.
-- ARGV: time (see include/server-time), then one JSON object; in it, besides the fields each script
--       names: the channel to publish on, and for each breaker its spec and its name (guard and lane,
--       escaped)
-- view: now us, version, generation, kind, until us, closed at us, openings, probes, successes, failed
--       probes, isolated until us, calls, failures, slow, in flight, failures in a row
-- expiry: an open breaker after its open time plus the time that probing may take, counted from the
--         last read; a closed one after its window, or after five minutes if it has ever been open,
--         counted from the last report or change
local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local MARGIN_US = 1000000
local LONGEST_LIFE_US = 300000000
local UNPROBED_US = 60000000

--- @include server-time
local input = cjson.decode(ARGV[2])
local server = server_us()

-- Packed as an array, because names would be most of the value.
local function read_breaker(key)
  local packed = redis.call('GET', key)
  local f = packed and cmsgpack.unpack(packed) or { 0, 0, 0, CLOSED, 0, 0, 0, 0, 0, 0, {}, {}, {}, empty_tally() }
  return {
    time_us = f[1], version = f[2], generation = f[3], kind = f[4], open_until_us = f[5],
    open_for_us = f[6], openings = f[7], closed_at_us = f[8], successes = f[9], failed_probes = f[10],
    probes = f[11], late_probes = f[12], isolations = f[13], tally = f[14],
  }
end

local function pack_breaker(state)
  return cmsgpack.pack({
    state.time_us, state.version, state.generation, state.kind, state.open_until_us,
    state.open_for_us, state.openings, state.closed_at_us, state.successes, state.failed_probes,
    state.probes, state.late_probes, state.isolations, state.tally,
  })
end

local function show(state, now)
  state.version = max(now, state.version + 1)
end

local function move(state, kind, now)
  state.kind = kind
  state.generation = max(now, state.generation + 1)
  state.successes = 0
  state.failed_probes = 0
  for probe, ends in pairs(state.probes) do state.late_probes[probe] = ends end
  state.probes = {}
  if kind == CLOSED then state.tally = empty_tally() end
  show(state, now)
end

local function open(state, spec, now)
  if state.kind == CLOSED then
    state.openings = 0
    state.open_for_us = spec[OPEN_US]
  elseif state.kind == HALF_OPEN then
    state.openings = state.openings + 1
    local longer = max(spec[OPEN_US], ceil(state.open_for_us * spec[OPEN_FACTOR]))
    state.open_for_us = min(spec[MAX_OPEN_US], longer)
  end
  state.open_until_us = now + state.open_for_us
  move(state, OPEN, now)
end

local function close(state, now)
  state.openings = 0
  state.closed_at_us = now
  move(state, CLOSED, now)
end

local function rebase(state)
  local back_us = state.time_us - server
  state.open_until_us = state.open_until_us - back_us
  state.closed_at_us = max(0, state.closed_at_us - back_us)
  for probe, ends in pairs(state.probes) do state.probes[probe] = ends - back_us end
  for probe, ends in pairs(state.late_probes) do state.late_probes[probe] = ends - back_us end
  for holder, ends in pairs(state.isolations) do state.isolations[holder] = ends - back_us end
  state.tally = empty_tally()
  state.time_us = server
end

local function expire(ends, now)
  local expired = false
  for key, until_us in pairs(ends) do
    if until_us <= now then
      ends[key] = nil
      expired = true
    end
  end
  return expired
end

local function present(state, spec)
  if state.time_us - server > SET_BACK_US then rebase(state) end
  local now = max(server, state.time_us)
  state.time_us = now
  if expire(state.isolations, now) then show(state, now) end
  if state.kind == OPEN and state.open_until_us <= now then move(state, HALF_OPEN, now) end
  expire(state.probes, now)
  expire(state.late_probes, now)
  if state.kind == CLOSED then advance(state.tally, spec, now) end
  return now
end

local function size(of)
  local entries = 0
  for _ in pairs(of) do entries = entries + 1 end
  return entries
end

-- How many probes may start now, in the whole fleet.
local function free_probes(state, spec)
  return max(0, spec[PROBES] - size(state.probes) - size(state.late_probes))
end

local function latest(ends)
  local until_us = 0
  for _, each in pairs(ends) do until_us = max(until_us, each) end
  return until_us
end

local function view_of(state, now)
  local calls, failures, slow, in_flight, run = totals(state.tally)
  return {
    now, state.version, state.generation, state.kind, state.kind == OPEN and state.open_until_us or 0, state.closed_at_us, state.openings,
    size(state.probes) + size(state.late_probes), state.successes, state.failed_probes, latest(state.isolations), calls, failures, slow,
    in_flight, run,
  }
end

local function relevant_us(state, spec, now)
  if state.kind == CLOSED then
    return max(spec[WINDOW], (spec[WINDOW] > 0 and state.generation == 0) and 0 or LONGEST_LIFE_US)
  end
  local open_us = state.kind == OPEN and state.open_until_us - now or 0
  local broken_us = open_us + max(spec[OPEN_US], spec[PROBE_LEASE], UNPROBED_US)
  return min(broken_us, max(LONGEST_LIFE_US, 2 * open_us))
end

-- Publishing only saves time, so the script continues if the server forbids it.
local function publish(name, view)
  local fields = { name }
  for index = 1, #view do fields[index + 1] = string.format('%.0f', view[index]) end
  redis.pcall('PUBLISH', input.channel, table.concat(fields, ' '))
end

local function keep(key, name, state, spec, now, version_before)
  local life = max(relevant_us(state, spec, now), latest(state.isolations) - now) + MARGIN_US
  redis.call('SET', key, pack_breaker(state), 'PX', ceil(life / 1000))
  local view = view_of(state, now)
  if state.version ~= version_before then publish(name, view) end
  return view
end

-- For reads: they do not extend the life of a closed breaker that did not change.
-- last: its time when it was read, which is later than now if the clock was set back.
local function read_reply(key, name, state, spec, now, version_before, last)
  if state.kind == CLOSED and state.version == version_before and now >= last then
    return view_of(state, now)
  end
  return keep(key, name, state, spec, now, version_before)
end
