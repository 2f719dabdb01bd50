-- How each algorithm counts. Twin of store/limits/counting.ts.
--- @include count-fields
--- @include calendar-day
local SLIDING, TOKEN, LEAKY, FIXED = 1, 2, 3, 4
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
-- A low point of a token bucket.
local AT_US, DEBT_US = 1, 2
local MOST_LOWS = 8

local function empty_count()
  return { 0, 0, 0, 0, 0, '', 0, 0, 0, 0 }
end

local function open_slices(count)
  local slices = count[PACKED_SLICES] ~= '' and cmsgpack.unpack(count[PACKED_SLICES]) or {}
  for index = #slices + 1, count[SLICE_COUNT] do slices[index] = 0 end
  slices[count[NEWEST_SLICE] % count[SLICE_COUNT] + 1] = count[NEWEST_UNITS]
  return slices
end

local function adopts(spec, count, slice_us, version)
  if count[SLICE_US] == slice_us and count[COUNT_WINDOW] == spec[WINDOW] then return false end
  if count[SLICE_US] == 0 or count[UNITS] == 0 then return true end
  return version > count[COUNT_VERSION] or spec[WINDOW] > count[COUNT_WINDOW]
end

local function advance_slices(spec, count, now, version)
  local own_slice_us = ceil(spec[WINDOW] / spec[SLICES])
  if adopts(spec, count, own_slice_us, version) then
    count[SLICE_US], count[COUNT_WINDOW], count[COUNT_VERSION] = own_slice_us, spec[WINDOW], version
    count[SLICE_COUNT] = ceil(spec[WINDOW] / own_slice_us) + 1
    count[PACKED_SLICES], count[NEWEST_UNITS], count[NEWEST_SLICE] = '', count[UNITS], floor(now / own_slice_us)
    return count[UNITS] > 0
  end
  local slice = floor(now / count[SLICE_US])
  local length = count[SLICE_COUNT]
  if slice <= count[NEWEST_SLICE] then return false end
  local slices = open_slices(count)
  for passed = max(count[NEWEST_SLICE], slice - length) + 1, slice do
    count[UNITS] = count[UNITS] - slices[passed % length + 1]
    slices[passed % length + 1] = 0
  end
  count[NEWEST_SLICE], count[NEWEST_UNITS], count[PACKED_SLICES] = slice, 0, cmsgpack.pack(slices)
  return false
end

local function advance_window(spec, count, now, version)
  if adopts(spec, count, spec[WINDOW], version) then
    count[SLICE_US], count[COUNT_WINDOW], count[COUNT_VERSION] = spec[WINDOW], spec[WINDOW], version
    count[NEWEST_SLICE] = window_at(spec, spec[WINDOW], now)
    return count[UNITS] > 0
  end
  local window = window_at(spec, count[SLICE_US], now)
  if window > count[NEWEST_SLICE] then
    count[NEWEST_SLICE] = window
    count[UNITS] = 0
  end
  return false
end

local function rescale(spec, count, now)
  if count[BUCKET_LIMIT] == spec[LIMIT] and count[SLICE_US] == spec[WINDOW] then return false end
  local in_debt = count[FREE_AT_US] > now and count[BUCKET_LIMIT] > 0
  if in_debt then
    local units = ((count[FREE_AT_US] - now) * count[BUCKET_LIMIT]) / count[SLICE_US]
    count[FREE_AT_US] = now + ceil((units * spec[WINDOW]) / spec[LIMIT])
    for _, low in ipairs(count[LOWS] or {}) do
      local low_units = (low[DEBT_US] * count[BUCKET_LIMIT]) / count[SLICE_US]
      low[DEBT_US] = floor((low_units * spec[WINDOW]) / spec[LIMIT])
    end
  end
  count[BUCKET_LIMIT] = spec[LIMIT]
  count[SLICE_US] = spec[WINDOW]
  return in_debt
end

local function advance(spec, count, now, version)
  if spec[ALGORITHM] == SLIDING then return advance_slices(spec, count, now, version) end
  if spec[ALGORITHM] == FIXED then return advance_window(spec, count, now, version) end
  return rescale(spec, count, now)
end

local function is_bucket(spec)
  return spec[ALGORITHM] == TOKEN or spec[ALGORITHM] == LEAKY
end

local function units_to_us(spec, units)
  return ceil((units * spec[WINDOW]) / spec[LIMIT])
end

-- How far ahead of now a token bucket may be charged: as much as a burst of single units takes, each
-- rounded up, but less than one unit more than a full bucket.
local function burst_us(spec)
  local burst = spec[BURST] == 0 and spec[LIMIT] or spec[BURST]
  return min(burst * units_to_us(spec, 1), units_to_us(spec, burst + 1) - 1)
end

local function fits(spec, count, now, cost)
  if cost == 0 then return true end
  if spec[ALGORITHM] == LEAKY then return count[FREE_AT_US] <= now end
  if spec[ALGORITHM] == TOKEN then
    return max(count[FREE_AT_US], now) + units_to_us(spec, cost) - now <= burst_us(spec)
  end
  if is_ending(spec, count, now) then return false end
  return count[UNITS] + cost <= spec[LIMIT]
end

local function capacity(spec)
  return spec[ALGORITHM] == TOKEN and spec[BURST] > 0 and spec[BURST] or spec[LIMIT]
end

local function wait_us(spec, count, now, cost)
  if spec[ALGORITHM] == LEAKY then return count[FREE_AT_US] - now end
  if spec[ALGORITHM] == TOKEN then
    return max(count[FREE_AT_US], now) + units_to_us(spec, cost) - burst_us(spec) - now
  end
  if spec[ALGORITHM] == FIXED then return window_end_us(spec, count[SLICE_US], count[NEWEST_SLICE]) - now end
  local length = count[SLICE_COUNT]
  local slices = open_slices(count)
  local missing = count[UNITS] + cost - spec[LIMIT]
  for slice = max(0, count[NEWEST_SLICE] - length + 1), count[NEWEST_SLICE] do
    missing = missing - slices[slice % length + 1]
    if missing <= 0 then return (slice + length) * count[SLICE_US] - now end
  end
  return spec[WINDOW]
end

-- Merges the two low points with the most similar debts: the lower debt at the later time.
local function merge_lows(lows)
  local best, smallest_us = 1, math.huge
  for index = 1, #lows - 1 do
    local apart_us = lows[index + 1][DEBT_US] - lows[index][DEBT_US]
    if apart_us < smallest_us then best, smallest_us = index, apart_us end
  end
  lows[best][AT_US] = lows[best + 1][AT_US]
  table.remove(lows, best + 1)
end

local function note_low(spec, count, now)
  if spec[ALGORITHM] ~= TOKEN then return end
  local lows = count[LOWS] or {}
  count[LOWS] = lows
  local debt_us = max(0, count[FREE_AT_US] - now)
  while #lows > 0 and lows[#lows][DEBT_US] >= debt_us do lows[#lows] = nil end
  if #lows > 0 and lows[#lows][AT_US] == now then return end
  lows[#lows + 1] = { now, debt_us }
  if #lows > MOST_LOWS then merge_lows(lows) end
end

local function charge(spec, count, now, cost)
  if is_bucket(spec) then
    note_low(spec, count, now)
    count[FREE_AT_US] = max(count[FREE_AT_US], now) + units_to_us(spec, cost)
    return
  end
  count[UNITS] = count[UNITS] + cost
  if spec[ALGORITHM] == SLIDING then count[NEWEST_UNITS] = count[NEWEST_UNITS] + cost end
end

local function stamp_of(spec, count, now)
  if spec[ALGORITHM] == LEAKY then return count[FREE_AT_US] end
  return is_bucket(spec) and now or count[NEWEST_SLICE]
end

-- Returns no more than the smallest debt since the permit was granted: without the permit, the bucket might
-- have been full, and what flowed back would have been lost.
local function refund_tokens(spec, count, now, stamp, units)
  note_low(spec, count, now)
  local since, lowest_us = nil, count[FREE_AT_US] - now
  for index, low in ipairs(count[LOWS]) do
    if low[AT_US] > stamp then
      since, lowest_us = index, low[DEBT_US]
      break
    end
  end
  local back_us = min(units_to_us(spec, units), max(0, lowest_us))
  count[FREE_AT_US] = count[FREE_AT_US] - back_us
  if not since then return end
  local lows = {}
  for index, low in ipairs(count[LOWS]) do
    if index >= since then low[DEBT_US] = low[DEBT_US] - back_us end
    if index >= since or low[DEBT_US] < lowest_us - back_us then lows[#lows + 1] = low end
  end
  count[LOWS] = lows
end

local function refund(spec, count, now, stamp, units)
  if spec[ALGORITHM] == TOKEN then
    refund_tokens(spec, count, now, stamp, units)
  elseif spec[ALGORITHM] == LEAKY then
    -- Only the last turn can be returned.
    if stamp == count[FREE_AT_US] then
      count[FREE_AT_US] = max(now, count[FREE_AT_US] - units_to_us(spec, units))
    end
  elseif spec[ALGORITHM] == FIXED then
    if stamp == count[NEWEST_SLICE] then count[UNITS] = max(0, count[UNITS] - units) end
  elseif stamp > count[NEWEST_SLICE] - count[SLICE_COUNT] and stamp <= count[NEWEST_SLICE] then
    local slices = open_slices(count)
    local index = stamp % count[SLICE_COUNT] + 1
    local back = min(units, slices[index])
    slices[index] = slices[index] - back
    count[UNITS], count[NEWEST_UNITS] = count[UNITS] - back, slices[count[NEWEST_SLICE] % count[SLICE_COUNT] + 1]
    count[PACKED_SLICES] = cmsgpack.pack(slices)
  end
end

local function overrun(spec, count, now, units)
  if is_bucket(spec) then
    note_low(spec, count, now)
    local most = now + burst_us(spec) + spec[WINDOW]
    count[FREE_AT_US] = min(max(count[FREE_AT_US], now) + units_to_us(spec, units), max(most, count[FREE_AT_US]))
    return
  end
  local most = max(0, 2 * spec[LIMIT] - count[UNITS])
  charge(spec, count, now, min(units, most))
end

local function remaining(spec, count, now)
  if spec[ALGORITHM] == LEAKY then return count[FREE_AT_US] <= now and 1 or 0 end
  if spec[ALGORITHM] == TOKEN then
    local free_us = burst_us(spec) - max(0, count[FREE_AT_US] - now)
    return max(0, floor((free_us * spec[LIMIT]) / spec[WINDOW]))
  end
  if is_ending(spec, count, now) then return 0 end
  return max(0, spec[LIMIT] - count[UNITS])
end

local function used(spec, count, now)
  if not is_bucket(spec) then return count[UNITS] end
  local whole = spec[BURST] == 0 and spec[LIMIT] or spec[BURST]
  if spec[ALGORITHM] == LEAKY then whole = 1 end
  return whole - remaining(spec, count, now)
end

local function life_us(count, now)
  -- Midnight of a time zone is at most a day after that of UTC.
  local slices = max(1, count[SLICE_COUNT]) + (count[SLICE_US] == DAY_US and 1 or 0)
  local window_us = count[SLICE_US] == 0 and count[COUNT_WINDOW]
    or (count[NEWEST_SLICE] + slices) * count[SLICE_US] - now
  return max(0, count[FREE_AT_US] - now, window_us)
end

local function rebase(count, back_us)
  if count[BUCKET_LIMIT] > 0 then
    count[FREE_AT_US] = count[FREE_AT_US] - back_us
    for _, low in ipairs(count[LOWS] or {}) do low[AT_US] = low[AT_US] - back_us end
  else
    count[SLICE_US] = 0
  end
end
