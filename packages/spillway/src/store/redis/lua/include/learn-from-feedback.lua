-- Finds the limit that a vendor's answer is about, and learns from it. Twin of store/limits/learn-from-feedback.ts
-- and of the refusals in store/limits/learned-limit.ts.
local CONFIRMS_WINDOWS = 10
local FRESH = 10
local ROUNDED_UP_US = 1000000
local newest_version = max(guard.v, version)

local function least_of(learned)
  local accepted, before = learned[L_ACCEPTED], learned[L_BEFORE]
  if accepted * 4 >= before * 3 and accepted * 4 <= before * 5 then return accepted end
  return max(accepted, ceil(learned[L_FROM] / 2))
end

local function lower_to(spec, count, accepted)
  local known = count[LEARNED]
  local is_recent = known and now - known[L_LOWERED] <= CONFIRMS_WINDOWS * spec[WINDOW]
  local before = is_recent and known[L_ACCEPTED] or 0
  local learned = { spec[LIMIT], accepted, before, spec[LIMIT], now, now, 0, 0, 0, newest_version }
  learned[L_LIMIT] = min(spec[LIMIT], least_of(learned))
  -- An array without a gap is packed in less space.
  count[LOWS] = count[LOWS] or {}
  count[LEARNED] = learned
end

local function accepted_of(spec, count)
  local learned = count[LEARNED]
  if spec[ALGORITHM] == SLIDING then return min(spec[LIMIT], count[UNITS]) end
  if learned and learned[L_STEPS] > 0 then return min(spec[LIMIT], learned[L_ACCEPTED]) end
  return max(1, floor((spec[LIMIT] * 7) / 10))
end

-- The limit in force after a refusal, or nil if nothing can be learned.
local function learn_from_refusal(spec, count, cost)
  local known, is_sliding = count[LEARNED], spec[ALGORITHM] == SLIDING
  if known and input.granted <= known[L_LOWERED] then
    local was_counted = input.granted > known[L_LOWERED] - spec[WINDOW] and known[L_STEPS] == 0
    if was_counted and is_sliding then
      known[L_ACCEPTED] = max(1, known[L_ACCEPTED] - cost)
      known[L_LIMIT] = min(known[L_LIMIT], least_of(known))
    end
    return lowered(spec, known[L_LIMIT])
  end
  if not is_sliding and known and known[L_STEPS] == 0 and now - known[L_LOWERED] < spec[WINDOW] then
    return lowered(spec, known[L_LIMIT])
  end
  local accepted = accepted_of(spec, count)
  if accepted == 0 then return nil end
  lower_to(spec, count, accepted)
  return lowered(spec, count[LEARNED][L_LIMIT])
end

-- The limit in force after an answer with the units left, or nil if nothing can be learned.
local function learn_from_left(spec, count, left)
  if spec[ALGORITHM] ~= SLIDING or (now - input.granted) * FRESH > spec[WINDOW] then return nil end
  local given = count[UNITS] + left
  if given == 0 or given * 10 >= spec[LIMIT] * 9 then return nil end
  lower_to(spec, count, given)
  local learned = count[LEARNED]
  learned[L_LIMIT] = min(learned[L_LIMIT], given)
  return lowered(spec, learned[L_LIMIT])
end

local function exceeded_limit(costs)
  local said = {}
  for _, each in ipairs(input.left) do said[each[1]] = said[each[1]] or each[2] end
  local best, is_best_said, most_used = nil, false, 0
  for index = 1, limit_count do
    local spec, cost, left = specs[index], costs[index], said[index]
    local is_said = left ~= nil and left < cost
    local is_enough = left ~= nil and not is_said and left * 10 >= spec[LIMIT]
    if spec[LEARN] and cost > 0 and not is_enough then
      local used_part = used(spec, counts[index], now) / spec[LIMIT]
      local is_better = is_said
      if is_said == is_best_said then is_better = used_part > most_used end
      if not best or is_better then best, is_best_said, most_used = index, is_said, used_part end
    end
  end
  return best
end

-- Index of the limit that was learned, or 0, and whether the lowered limit holds calls back.
local function learn_from_throttled()
  if not input.refused then return 0, false end
  local costs, booked, stamps = input.refused.costs, input.refused.booked, input.refused.stamps
  local index = exceeded_limit(costs)
  for each = 1, limit_count do
    if booked[each] > 0 then refund(specs[each], counts[each], now, stamps[each], booked[each]) end
  end
  local spec = index and learn_from_refusal(specs[index], counts[index], costs[index])
  if not spec then return 0, false end
  specs[index] = spec
  local is_short = input.pause < 0 or input.pause <= spec[WINDOW] + ROUNDED_UP_US
  return index, is_short and not fits(spec, counts[index], now, min(costs[index], spec[LIMIT]))
end

local function learn_from_feedback()
  if input.throttled then return learn_from_throttled() end
  local learned = 0
  for _, each in ipairs(input.left) do
    local index, left = each[1], each[2]
    local spec = specs[index][LEARN] and input.granted > 0 and learn_from_left(specs[index], counts[index], left)
    if spec then specs[index], learned = spec, index end
  end
  return learned, false
end
