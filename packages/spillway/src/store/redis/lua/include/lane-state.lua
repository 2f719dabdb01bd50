-- The shared state of a lane and of its guard, and how it is brought to the present.
-- Twin of store/limits/lane-state.ts. Both are kept packed, in one key each. A lane in a pool uses the pool's
-- state in place of its own. If it also has limits of its own, the lane's state is the member, which only counts.
-- ARGV[1] time (see include/server-time)
-- ARGV[2] the request as JSON, because one long argument costs less than many short ones:
--         version v, limits l as { id, algorithm, limit, window us, slices, burst, span: 0 the lane or its
--         pool, 1 all lanes, 2 the member; 1 if it learns; its day (see include/calendar-day) }, m: number of the member's key in KEYS, if there is one, and
--         the operation's own fields
-- ARGV[3] tag of these limits (see include/lane-head)
local MARGIN_US = 1000000
local CHANGED_LIMITS_LIFE_US = 86400000000

local input = cjson.decode(ARGV[2])
local version = input.v
local limit_count = #input.l
local IN_GUARD, IN_MEMBER = 1, 2

--- @include server-time
--- @include packed-lane
--- @include waiting-pods
--- @include learned-limit

local function spec_stored(spec, guard)
  local stored = guard.limits[spec[ID]]
  if not stored then return spec end
  local limit, window, burst, slices = stored[1], stored[2], stored[3], stored[4]
  return { spec[ID], spec[ALGORITHM], limit, window, slices, burst, spec[COUNTED_IN], spec[LEARN], spec[DAY] }
end

local function spec_in_force(spec, guard, now)
  local base = guard.v > version and spec_stored(spec, guard) or spec
  local override = guard.overrides[spec[ID]]
  if not override or override[2] <= now then return base end
  local limit = override[1]
  return {
    base[ID], base[ALGORITHM], limit, base[WINDOW], base[SLICES], base[BURST], base[COUNTED_IN], base[LEARN], base[DAY],
  }
end

local function rebase_state(state, server)
  local back_us = state.t - server
  if back_us <= 0 then return end
  for _, count in pairs(state.counts) do
    rebase(count, back_us)
    rebase_learned(count, back_us)
  end
  state.p = max(0, state.p - back_us)
  state.w = none_waiting()
  if state.f then
    state.f = 0
  else
    for _, override in pairs(state.overrides) do override[2] = override[2] - back_us end
  end
  state.t = server
end

local lane = unpack_lane(stored_lane)
local guard = stored_guard and cmsgpack.unpack(stored_guard)
  or { t = 0, p = 0, v = 0, limits = {}, overrides = {}, counts = {} }
guard.w = guard.w or none_waiting()
-- A pod of an earlier release may have written it.
guard.p = guard.p or 0
local member = input.m and unpack_lane(redis.call('GET', KEYS[input.m]))
local server = server_us()
local latest = max(lane.t, guard.t, member and member.t or 0)
local changed = latest - server > SET_BACK_US
if changed then
  rebase_state(lane, server)
  rebase_state(guard, server)
  if member then rebase_state(member, server) end
end
local now = changed and server or max(server, latest)
local own_specs = {}
local specs = {}
local counts = {}
local spans_vendor = false
for index = 1, limit_count do
  local own = input.l[index]
  local spec = spec_in_force(own, guard, now)
  local home = lane
  if spec[COUNTED_IN] == IN_GUARD then home = guard
  elseif spec[COUNTED_IN] == IN_MEMBER then home = member end
  local count = home.counts[spec[ID]]
  if not count then
    count = empty_count()
    home.counts[spec[ID]] = count
  end
  if own[LEARN] and count[LEARNED] then
    local override, has_changed = guard.overrides[own[ID]], false
    spec, has_changed = learned_spec(spec, count, now, max(guard.v, version), override and override[3] or 0)
    changed = has_changed or changed
  end
  changed = advance(spec, count, now, max(guard.v, version)) or changed
  own_specs[index] = own
  specs[index] = spec
  counts[index] = count
  spans_vendor = spans_vendor or spec[COUNTED_IN] == IN_GUARD
end

-- Pods wait in the lane or its pool; those that wait for vendor-wide limits wait in the guard.
local waiting = spans_vendor and guard.w or lane.w

local function paused_until()
  return max(lane.p, guard.p)
end

local function still_paused()
  return paused_until() > now and paused_until() or 0
end

local function longest_life_us(all_counts)
  local life = 0
  for _, count in pairs(all_counts) do life = max(life, life_us(count, now), learned_life_us(count, now)) end
  return life
end

local function lane_life_us(state)
  return max(state.p - now, longest_life_us(state.counts), waiting_life_us(state.w, now))
end

-- The server counts an expiry from its own time, which may be a little behind.
local function save(key, packed, life)
  redis.call('SET', key, packed, 'PX', ceil((life + now - server + MARGIN_US) / 1000))
end

-- Whether the fast path needs only the head for this limit.
local function is_in_head(spec, count)
  return spec[COUNTED_IN] == 0 and spec[ALGORITHM] == SLIDING
    and count[SLICE_US] == ceil(spec[WINDOW] / spec[SLICES]) and count[COUNT_WINDOW] == spec[WINDOW]
end

-- The limits of this request come first, in its order; then those that only others know.
local function save_lane()
  local ids, limits = {}, {}
  -- Waiting pods share the free units. The fast path ignores them, so it is disabled while pods wait.
  local tag = #lane.w[1] == 0 and ARGV[3] or NO_TAG
  for index = 1, limit_count do
    local own = own_specs[index]
    if not is_in_head(own, counts[index]) then tag = NO_TAG end
    if own[COUNTED_IN] == 0 then
      ids[#ids + 1] = own[ID]
      local learned = own[LEARN] and counts[index][LEARNED]
      limits[own[ID]] = learned and min(own[LIMIT], learned[L_LIMIT]) or own[LIMIT]
    end
  end
  for id in pairs(lane.counts) do
    if not limits[id] then ids[#ids + 1] = id end
  end
  lane.t = now
  save(KEYS[1], pack_lane(lane, tag, ids, limits), lane_life_us(lane))
end

local function save_member()
  local ids = {}
  for id in pairs(member.counts) do ids[#ids + 1] = id end
  member.t = now
  save(KEYS[input.m], pack_lane(member, NO_TAG, ids, {}), lane_life_us(member))
end

local function save_guard()
  local life = max(longest_life_us(guard.counts), guard.v > 0 and CHANGED_LIMITS_LIFE_US or 0)
  life = max(life, guard.p - now, waiting_life_us(guard.w, now))
  for _, override in pairs(guard.overrides) do life = max(life, override[2] - now) end
  guard.t = now
  save(KEYS[2], cmsgpack.pack(guard), life)
end

local function keep()
  save_lane()
  if member then save_member() end
  if spans_vendor or changed then save_guard() end
end
