-- What is shared about a breaker, and how it is brought to the present. Twin of
-- store/breaker/breaker-state.ts.
-- ARGV: time (see include/server-time), then one JSON object; in it, besides what each script says,
--       channel to publish on, and for each breaker its spec and its name (guard and lane, escaped)
-- view: now us, version, generation, kind, until us, closed at us, openings, probes, successes,
--       isolated until us, calls, failures, slow, failures in a row
-- expiry: an open breaker as long as it is open plus what somebody needs to probe it, counted from when
--         somebody last asked; a closed one as long as its window, or for five minutes if it has ever
--         been open, counted from the last report or change
local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local MARGIN_US = 1000000
local LONGEST_LIFE_US = 300000000
local UNPROBED_US = 60000000

--- @include server-time
local input = cjson.decode(ARGV[2])
local server = server_us()

local function read_breaker(key)
  local packed = redis.call('GET', key)
  if packed then return cmsgpack.unpack(packed) end
  return {
    t = 0, v = 0, g = 0, kind = CLOSED, u = 0, d = 0, o = 0, c = 0, w = 0,
    probes = {}, late = {}, holds = {}, tally = empty_tally(),
  }
end

local function show(state, now)
  state.v = max(now, state.v + 1)
end

local function move(state, kind, now)
  state.kind = kind
  state.g = max(now, state.g + 1)
  state.w = 0
  for probe, ends in pairs(state.probes) do state.late[probe] = ends end
  state.probes = {}
  if kind == CLOSED then state.tally = empty_tally() end
  show(state, now)
end

local function open(state, spec, now)
  if state.kind == CLOSED then
    state.o = 0
    state.d = spec[OPEN_US]
  elseif state.kind == HALF_OPEN then
    state.o = state.o + 1
    local longer = max(spec[OPEN_US], ceil(state.d * spec[OPEN_FACTOR]))
    state.d = min(spec[MAX_OPEN_US], longer)
  end
  state.u = now + state.d
  move(state, OPEN, now)
end

local function close(state, now)
  state.o = 0
  state.c = now
  move(state, CLOSED, now)
end

local function rebase(state)
  local back_us = state.t - server
  state.u = state.u - back_us
  state.c = max(0, state.c - back_us)
  for probe, ends in pairs(state.probes) do state.probes[probe] = ends - back_us end
  for probe, ends in pairs(state.late) do state.late[probe] = ends - back_us end
  for holder, ends in pairs(state.holds) do state.holds[holder] = ends - back_us end
  state.tally = empty_tally()
  state.t = server
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
  if state.t - server > SET_BACK_US then rebase(state) end
  local now = max(server, state.t)
  state.t = now
  if expire(state.holds, now) then show(state, now) end
  if state.kind == OPEN and state.u <= now then move(state, HALF_OPEN, now) end
  expire(state.probes, now)
  expire(state.late, now)
  if state.kind == CLOSED then advance(state.tally, spec, now) end
  return now
end

local function size(of)
  local entries = 0
  for _ in pairs(of) do entries = entries + 1 end
  return entries
end

local function latest(ends)
  local until_us = 0
  for _, each in pairs(ends) do until_us = max(until_us, each) end
  return until_us
end

local function view_of(state, now)
  local calls, failures, slow, run = totals(state.tally)
  return {
    now, state.v, state.g, state.kind, state.kind == OPEN and state.u or 0, state.c, state.o,
    size(state.probes) + size(state.late), state.w, latest(state.holds), calls, failures, slow, run,
  }
end

local function means_something_us(state, spec, now)
  if state.kind == CLOSED then
    return max(spec[WINDOW], (spec[WINDOW] > 0 and state.g == 0) and 0 or LONGEST_LIFE_US)
  end
  local open_us = state.kind == OPEN and state.u - now or 0
  local broken_us = open_us + max(spec[OPEN_US], spec[PROBE_LEASE], UNPROBED_US)
  return min(broken_us, max(LONGEST_LIFE_US, 2 * open_us))
end

-- Being told is for speed: a server that does not let us publish must not keep us from counting.
local function publish(name, view)
  local words = { name }
  for index = 1, #view do words[index + 1] = string.format('%.0f', view[index]) end
  redis.pcall('PUBLISH', input.channel, table.concat(words, ' '))
end

local function keep(key, name, state, spec, now, version_before)
  local life = max(means_something_us(state, spec, now), latest(state.holds) - now) + MARGIN_US
  redis.call('SET', key, cmsgpack.pack(state), 'PX', ceil(life / 1000))
  local view = view_of(state, now)
  if state.v ~= version_before then publish(name, view) end
  return view
end

-- For who only looks: a closed breaker that is as it was is not kept any longer because of that.
-- last: its time when it was read, which is later than now if the clock was set back.
local function tell(key, name, state, spec, now, version_before, last)
  if state.kind == CLOSED and state.v == version_before and now >= last then
    return view_of(state, now)
  end
  return keep(key, name, state, spec, now, version_before)
end
