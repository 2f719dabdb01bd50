-- All of take-permits, for scripts that do more in the same step.
local BEFORE_SUMS = 5
local tag = ARGV[3]
local call_count = tonumber(ARGV[5])
local sums = {}
for index = BEFORE_SUMS + 1, #ARGV do sums[index - BEFORE_SUMS] = tonumber(ARGV[index]) end

--- @include fast-take
local usual_reply = usual_take(tag, call_count, sums)
if usual_reply then return usual_reply end

--- @include counting
--- @include lane-state
--- @include permits-reply
local granted = 0
local wait = 0

-- The pod that asks, if its calls wait: its channel, the text that wakes it, and how long they can.
local waiter = input.w
forget_late(waiting, now)
local entries = waiting[1]
local own
for index, entry in ipairs(entries) do
  if waiter and entry[CHANNEL] == waiter[1] and entry[TEXT] == waiter[2] then own = index end
end

-- Other pods that are due and have not had their share.
local function unserved()
  local pods = 0
  for index, entry in ipairs(entries) do
    if index ~= own and entry[WAKE] <= now and not entry[SERVED] then pods = pods + 1 end
  end
  return pods
end

-- Nothing is left, or all have had their share.
local function end_round()
  for _, entry in ipairs(entries) do
    changed_waiting = changed_waiting or entry[SERVED]
    entry[SERVED] = false
  end
end

if own and entries[own][SERVED] and unserved() == 0 then end_round() end
local is_served = own and entries[own][SERVED] or false
local others = unserved()
local is_shared = others > 0

-- What the pods before this one need of a limit: all of them, or those that have just become due.
local function needs_ahead(id, only_due)
  local units = 0
  for index = 1, (own or #entries + 1) - 1 do
    local entry = entries[index]
    local is_due = entry[WAKE] <= now and now < entry[WAKE] + RESERVED_US
    if not only_due or is_due then units = units + (entry[NEED][id] or 0) end
  end
  return units
end

local function needs_of_others(id)
  local units = 0
  for index, entry in ipairs(entries) do
    if index ~= own then units = units + (entry[NEED][id] or 0) end
  end
  return units
end

-- Windows add up as in include/fast-take, so often no single call has to be looked at.
local function all_fit()
  if is_shared then return false end
  for index = 1, limit_count do
    local spec = specs[index]
    if is_bucket(spec) or not fits(spec, counts[index], now, sums[index]) then return false end
  end
  return true
end

local function costs_at(costs, call)
  local before, each = (call - 1) * limit_count, {}
  for index = 1, limit_count do each[index] = min(costs[before + index], capacity(specs[index])) end
  return each
end

local function charge_all(costs)
  for index = 1, limit_count do
    if costs[index] > 0 then charge(specs[index], counts[index], now, costs[index]) end
  end
end

local function fit(costs, reserved)
  for index = 1, limit_count do
    local cost, ahead = costs[index], reserved and reserved[index] or 0
    if wait_behind_us(specs[index], counts[index], now, cost, ahead) > 0 then return false end
  end
  return true
end

local function share_of(index)
  return is_served and 0 or floor(remaining(specs[index], counts[index], now) / (others + 1))
end

-- A call needs as much as it costs, and as much again for the pods that are due before this one. If other
-- pods share what is free, this one gets its share, and at least one call in a round. Returns whether units
-- are left for other pods of this round.
local function grant(costs)
  local reserved, share, used
  if is_shared then
    reserved, share = {}, {}
    for index = 1, limit_count do
      reserved[index] = needs_ahead(specs[index][ID], true)
      share[index] = share_of(index)
    end
  end
  used = {}
  for index = 1, limit_count do used[index] = 0 end
  for call = 1, call_count do
    local each = costs_at(costs, call)
    if not fit(each, reserved) then
      -- Reserved for a pod that is due; if that pod is late, this one may have it.
      if fit(each) then
        wait = SHARE_RETRY_US
        return true
      end
      end_round()
      for index = 1, limit_count do
        local id = specs[index][ID]
        local ahead = floor((granted > 0 and needs_of_others(id) or needs_ahead(id, false)) / 2)
        wait = max(wait, wait_behind_us(specs[index], counts[index], now, each[index], ahead))
      end
      wait = max(1, wait)
      return false
    end
    if share and (granted > 0 or is_served) then
      for index = 1, limit_count do
        if each[index] > 0 and used[index] + each[index] > share[index] then
          wait = SHARE_RETRY_US
          return true
        end
      end
    end
    charge_all(each)
    for index = 1, limit_count do used[index] = used[index] + each[index] end
    granted = call
  end
  return false
end

-- A pod that got something goes to the end of the list, one that got everything leaves it.
local function end_turn(costs, goes_on)
  local waits = costs ~= nil and wait > 0 and wait <= waiter[3]
  if own and (not waits or granted > 0) then table.remove(entries, own) end
  if own or waits then changed_waiting = true end
  if not waits then return end
  local need = {}
  for index = 1, limit_count do
    if costs[index] > 0 then need[specs[index][ID]] = costs[index] end
  end
  local entry = { waiter[1], waiter[2], now + wait, need, goes_on and (granted > 0 or is_served) }
  if own and granted == 0 then entries[own] = entry
  elseif #entries < MAX_WAITING then entries[#entries + 1] = entry end
end

local paused = paused_until() > now
local costs
local goes_on = false
if paused then
  wait = paused_until() - now
elseif all_fit() then
  for index = 1, limit_count do sums[index] = min(sums[index], capacity(specs[index])) end
  charge_all(sums)
  granted = call_count
else
  costs = cjson.decode(ARGV[4])
  goes_on = grant(costs)
end
if not paused then
  -- The end of an override may raise the limit.
  for index = 1, limit_count do
    local override = guard.overrides[specs[index][ID]]
    if override and override[2] > now then wait = min(wait, override[2] - now) end
  end
end
if waiter then
  end_turn(not paused and granted < call_count and costs_at(costs, granted + 1) or nil, goes_on)
end
if not paused and wake_next(waiting, specs, counts, now, waiter) then changed_waiting = true end

return permits_reply(granted, wait, paused)
