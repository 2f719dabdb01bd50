-- All of take-permits, for scripts that do more in the same step.
local BEFORE_SUMS = 5
local tag = ARGV[3]
local call_count = tonumber(ARGV[5])
local sums = {}
for index = BEFORE_SUMS + 1, #ARGV do sums[index - BEFORE_SUMS] = tonumber(ARGV[index]) end

--- @include usual-take
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
local due = 0
for index, entry in ipairs(entries) do
  if waiter and entry[CHANNEL] == waiter[1] and entry[TEXT] == waiter[2] then own = index
  elseif entry[WAKE] <= now then due = due + 1 end
end
local shares = due + 1

-- What the pods before this one need of a limit: all of them, or only those that are due.
local function needs_ahead(id, only_due)
  local units = 0
  for index = 1, (own or #entries + 1) - 1 do
    local entry = entries[index]
    if not only_due or entry[WAKE] <= now then units = units + (entry[NEED][id] or 0) end
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

-- Windows add up as in include/usual-take, so often no single call has to be looked at.
local function all_fit()
  if shares > 1 then return false end
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

-- A call needs as much as it costs, and as much again for the pods that are due before this one. If
-- several pods are due, each gets its share of what is free, and at least one call.
local function grant(costs)
  local reserved, share, used = {}, {}, {}
  for index = 1, limit_count do
    reserved[index] = shares > 1 and needs_ahead(specs[index][ID], true) or 0
    share[index] = shares > 1 and floor(remaining(specs[index], counts[index], now) / shares) or math.huge
    used[index] = 0
  end
  for call = 1, call_count do
    local each = costs_at(costs, call)
    local fit, over = true, false
    for index = 1, limit_count do
      local cost = each[index]
      fit = fit and wait_behind_us(specs[index], counts[index], now, cost, reserved[index]) == 0
      over = over or (cost > 0 and used[index] + cost > share[index])
    end
    if not fit then
      for index = 1, limit_count do
        local id = specs[index][ID]
        local ahead = granted > 0 and needs_of_others(id) or needs_ahead(id, false)
        wait = max(wait, wait_behind_us(specs[index], counts[index], now, each[index], ahead))
      end
      wait = max(1, wait)
      return
    end
    if granted > 0 and over then
      wait = SHARE_RETRY_US
      return
    end
    charge_all(each)
    for index = 1, limit_count do used[index] = used[index] + each[index] end
    granted = call
  end
end

-- A pod that got something goes to the end of the list, one that got everything leaves it.
local function end_turn(costs)
  local waits = costs ~= nil and wait > 0 and wait <= waiter[3]
  if own and (not waits or granted > 0) then table.remove(entries, own) end
  if own or waits then changed_waiting = true end
  if not waits then return end
  local need = {}
  for index = 1, limit_count do
    if costs[index] > 0 then need[specs[index][ID]] = costs[index] end
  end
  local entry = { waiter[1], waiter[2], now + wait, need }
  if own and granted == 0 then entries[own] = entry
  elseif #entries < MAX_WAITING then entries[#entries + 1] = entry end
end

local paused = paused_until() > now
local costs
if paused then
  wait = paused_until() - now
elseif all_fit() then
  for index = 1, limit_count do sums[index] = min(sums[index], capacity(specs[index])) end
  charge_all(sums)
  granted = call_count
else
  costs = cjson.decode(ARGV[4])
  grant(costs)
end
if not paused then
  -- The end of an override may raise the limit.
  for index = 1, limit_count do
    local override = guard.overrides[specs[index][ID]]
    if override and override[2] > now then wait = min(wait, override[2] - now) end
  end
end
if waiter then end_turn(not paused and granted < call_count and costs_at(costs, granted + 1) or nil) end
if not paused and wake_next(waiting, specs, counts, now, waiter) then changed_waiting = true end

return permits_reply(granted, wait, paused)
