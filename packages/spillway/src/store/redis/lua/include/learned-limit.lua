-- A limit that follows what the vendor really gives, if that is less than configured: the limit in force, and its
-- raises. Twin of store/limits/learned-limit.ts; refusals are in include/learn-from-feedback.
-- A count's learned limit: { limit, accepted, before, from, lowered us, stepped us, steps, missing, full us, version }
local L_LIMIT, L_ACCEPTED, L_BEFORE, L_FROM, L_LOWERED = 1, 2, 3, 4, 5
local L_STEPPED, L_STEPS, L_MISSING, L_FULL, L_VERSION = 6, 7, 8, 9, 10
local LEARNED_KEPT_US = 3600000000
local ANSWERED = 4

local function lowered(spec, limit)
  if limit >= spec[LIMIT] then return spec end
  local burst = spec[BURST] > 0 and max(1, floor((spec[BURST] * limit) / spec[LIMIT])) or 0
  return {
    spec[ID], spec[ALGORITHM], limit, spec[WINDOW], spec[SLICES], burst, spec[COUNTED_IN], spec[LEARN], spec[DAY],
  }
end

local function is_raise_due(learned, window, now)
  if learned[L_MISSING] == 0 or (now - learned[L_FULL]) * ANSWERED < window then return false end
  local windows = 1
  if learned[L_STEPS] == 0 then
    windows = learned[L_LIMIT] >= 10 and 2 or learned[L_LIMIT] >= 4 and 4 or 6
  end
  return now - learned[L_STEPPED] >= windows * window
end

local function step_of(learned)
  local limit, steps, missing, from = learned[L_LIMIT], learned[L_STEPS], learned[L_MISSING], learned[L_FROM]
  if steps == 0 then return missing end
  local part = steps == 1 and ceil(limit / 16) or steps == 2 and ceil(limit / 4) or limit
  local step = max(missing, part)
  return from > limit and min(step, max(missing, from - limit)) or step
end

-- The limit in force, after a raise that is due, and whether the state has changed. set_us: when an operator last
-- set the limit for a while.
local function learned_spec(spec, count, now, version, set_us)
  local learned = count[LEARNED]
  if version > learned[L_VERSION] or set_us > learned[L_LOWERED] or now - learned[L_STEPPED] > LEARNED_KEPT_US then
    count[LEARNED] = nil
    return spec, true
  end
  local is_due = is_raise_due(learned, spec[WINDOW], now)
  if is_due then
    if learned[L_STEPS] > 0 then learned[L_ACCEPTED] = learned[L_LIMIT] end
    learned[L_LIMIT] = learned[L_LIMIT] + step_of(learned)
    learned[L_STEPS] = learned[L_STEPS] + 1
    learned[L_STEPPED], learned[L_MISSING], learned[L_FULL] = now, 0, 0
    if learned[L_LIMIT] >= spec[LIMIT] then count[LEARNED] = nil end
  end
  return lowered(spec, learned[L_LIMIT]), is_due
end

-- Calls of this cost wait. Returns whether that is new, and because of this limit.
local function note_full(spec, count, now, cost)
  local learned = count[LEARNED]
  if not learned or learned[L_MISSING] > 0 or cost == 0 then return false end
  local most = capacity(spec)
  if fits(spec, count, now, min(most, cost + max(1, floor(most / (spec[ALGORITHM] == SLIDING and 16 or 4))))) then return false end
  learned[L_MISSING], learned[L_FULL] = cost, now
  return true
end

local function learned_life_us(count, now)
  return count[LEARNED] and count[LEARNED][L_STEPPED] + LEARNED_KEPT_US - now or 0
end

local function rebase_learned(count, back_us)
  local learned = count[LEARNED]
  if not learned then return end
  for _, field in ipairs({ L_LOWERED, L_STEPPED, L_FULL }) do learned[field] = learned[field] - back_us end
end
