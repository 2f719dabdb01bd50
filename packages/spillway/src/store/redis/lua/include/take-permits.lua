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
--- @include equal-shares
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

local function part_of(spec, units)
  return floor(units * WHOLE / capacity(spec))
end

-- Units that are not used are still free later. A fixed window loses them at its end, a leaky bucket at once.
local function is_saved(spec)
  return spec[ALGORITHM] == SLIDING or spec[ALGORITHM] == TOKEN
end

-- How long before its time a pod begins to claim a part.
local function claims_before_us(need)
  local longest = SHARE_RETRY_US
  for index = 1, limit_count do
    local spec = specs[index]
    if is_saved(spec) then longest = max(longest, units_to_us(spec, need[spec[ID]] or 0)) end
  end
  return longest
end

local function most_while_asleep(need)
  local most = {}
  for index = 1, limit_count do
    local spec = specs[index]
    most[index] = is_saved(spec) and part_of(spec, need[spec[ID]] or 0) or 0
  end
  return most
end

-- The GOT of other pods whose claim has begun, and the claims of those that wait and are not too late.
local rivals, claims, is_one_due = {}, {}, false
for index, entry in ipairs(entries) do
  if index ~= own and entry[WAKE] - now <= claims_before_us(entry[NEED]) then
    rivals[#rivals + 1] = entry[GOT]
    if entry[WAITS] and now < entry[WAKE] + CLAIM_US then
      local is_due = entry[WAKE] <= now + SHARE_RETRY_US
      is_one_due = is_one_due or is_due
      claims[#claims + 1] = { entry[GOT], not is_due and most_while_asleep(entry[NEED]) }
    end
  end
end
local got = own and entries[own][GOT] or 0
local is_shared = #claims > 0

-- No other pod that claims a part was granted less.
local function had_least()
  for _, claim in ipairs(claims) do
    if claim[CLAIM_GOT] < got then return false end
  end
  return true
end

-- How long a call with these costs waits if they exceed this pod's part. Pods that are due ask soon, and
-- what they leave is free.
local function part_wait_us(costs)
  local longest = SHARE_RETRY_US
  if is_one_due then return longest end
  for index = 1, limit_count do
    local spec, cost = specs[index], costs[index]
    local claimed = claimed_before(claims, index, got + part_of(spec, cost))
    local ahead = ceil(claimed * capacity(spec) / WHOLE)
    longest = max(longest, wait_behind_us(spec, counts[index], now, cost, ahead))
  end
  return longest
end

-- A call was granted. Of several limits, the one of which it takes the largest part counts.
local function count_granted(costs)
  local largest = 0
  for index = 1, limit_count do largest = max(largest, part_of(specs[index], costs[index])) end
  got = got + largest
end

-- Only differences count. They are bounded: no pod has to make up for more than a whole limit.
local function subtract_least()
  local least = got
  for _, other in ipairs(rivals) do least = min(least, other) end
  for _, entry in ipairs(entries) do entry[GOT] = min(WHOLE, max(0, entry[GOT] - least)) end
end

-- What the pods before this one need of a limit: all of them, or those that have just become due. Of these,
-- pods that were granted more come after this one.
local function needs_ahead(id, only_due)
  local units = 0
  for index = 1, (own or #entries + 1) - 1 do
    local entry = entries[index]
    local is_due = entry[WAKE] <= now and now < entry[WAKE] + RESERVED_US and entry[GOT] <= got
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

-- Windows add up as in include/fast-take, so the calls often need no check one by one.
local function all_fit()
  if #rivals > 0 then return false end
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

-- A call needs as much as it costs, and as much again for the pods that are due before this one. If other
-- pods claim a part of what is free, this one gets its part. The pod that was granted least gets at least one call.
local function grant(costs)
  local reserved, parts
  if is_shared then
    reserved, parts = {}, {}
    for index = 1, limit_count do
      reserved[index] = needs_ahead(specs[index][ID], true)
      local free = part_of(specs[index], remaining(specs[index], counts[index], now))
      parts[index] = share_of(claims, index, got, free)
    end
  end
  local may_exceed = had_least()
  local used = {}
  for index = 1, limit_count do used[index] = 0 end
  for call = 1, call_count do
    local each = costs_at(costs, call)
    if not fit(each, reserved) then
      -- Reserved for a pod that is due; if that pod is late, this one may have it.
      if fit(each) then
        wait = SHARE_RETRY_US
        return
      end
      for index = 1, limit_count do
        local id = specs[index][ID]
        local ahead = floor((granted > 0 and needs_of_others(id) or needs_ahead(id, false)) / 2)
        wait = max(wait, wait_behind_us(specs[index], counts[index], now, each[index], ahead))
      end
      wait = max(1, wait)
      return
    end
    if parts and not (granted == 0 and may_exceed) then
      for index = 1, limit_count do
        if each[index] > 0 and part_of(specs[index], used[index] + each[index]) > parts[index] then
          wait = part_wait_us(each)
          return
        end
      end
    end
    charge_all(each)
    for index = 1, limit_count do used[index] = used[index] + each[index] end
    if #rivals > 0 then count_granted(each) end
    granted = call
  end
end

-- A pod that got something goes to the end of the list. One that does not wait leaves it, or is
-- remembered if others claim a part.
local function end_turn(costs)
  local waits = costs ~= nil and wait > 0 and wait <= waiter[3]
  local stays = waits or (#rivals > 0 and (granted > 0 or got > 0))
  if own and (not stays or granted > 0) then table.remove(entries, own) end
  if own or stays then changed_lane = true end
  if not stays then return end
  local need = {}
  for index = 1, waits and limit_count or 0 do
    if costs[index] > 0 then need[specs[index][ID]] = costs[index] end
  end
  local entry = { waiter[1], waiter[2], waits and now + wait or now, need, waits, got }
  if own and granted == 0 then entries[own] = entry
  elseif #entries < MAX_WAITING then entries[#entries + 1] = entry end
  if #rivals > 0 then subtract_least() end
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
if waiter then
  end_turn(not paused and granted < call_count and costs_at(costs, granted + 1) or nil)
end
if not paused and granted < call_count then
  local missing = costs_at(costs, granted + 1)
  for index = 1, limit_count do
    changed_lane = note_full(specs[index], counts[index], now, missing[index]) or changed_lane
  end
end
if not paused and wake_next(waiting, specs, counts, now, waiter) then changed_lane = true end

return permits_reply(granted, wait, paused)
