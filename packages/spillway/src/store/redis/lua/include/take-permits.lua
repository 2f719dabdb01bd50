-- The whole of take-permits, for whatever else goes along on the same trip.
local BEFORE_SUMS = 5
local tag = ARGV[3]
local wish_count = tonumber(ARGV[5])
local sums = {}
for index = BEFORE_SUMS + 1, #ARGV do sums[index - BEFORE_SUMS] = tonumber(ARGV[index]) end

--- @include usual-take
local usual_reply = usual_take(tag, wish_count, sums)
if usual_reply then return usual_reply end

--- @include counting
--- @include lane-state
--- @include permits-reply
local granted = 0
local wait = 0

-- Windows add up as in include/usual-take, so often nobody has to look at each wish.
local function all_fit()
  for index = 1, limit_count do
    local spec = specs[index]
    if is_bucket(spec) or not fits(spec, counts[index], now, sums[index]) then return false end
  end
  return true
end

local function longest_wait(costs, before)
  local longest = 0
  for index = 1, limit_count do
    local spec, count = specs[index], counts[index]
    local cost = min(costs[before + index], capacity(spec))
    if not fits(spec, count, now, cost) then
      longest = max(longest, wait_us(spec, count, now, cost), 1)
    end
  end
  return longest
end

local function charge_all(costs, before)
  for index = 1, limit_count do
    local cost = min(costs[before + index], capacity(specs[index]))
    if cost > 0 then charge(specs[index], counts[index], now, cost) end
  end
end

local paused = paused_until() > now
if paused then
  wait = paused_until() - now
elseif all_fit() then
  charge_all(sums, 0)
  granted = wish_count
else
  local costs = cjson.decode(ARGV[4])
  for wish = 1, wish_count do
    local before = (wish - 1) * limit_count
    wait = longest_wait(costs, before)
    if wait > 0 then break end
    charge_all(costs, before)
    granted = wish
  end
end

return permits_reply(granted, wait, paused)
