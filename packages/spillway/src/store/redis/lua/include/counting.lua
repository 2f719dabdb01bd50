-- How each algorithm counts. Twin of store/limits/counting.ts.
--- @include count-fields
local SLIDING, TOKEN, LEAKY, FIXED = 1, 2, 3, 4
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function empty_count()
  return { 0, 0, 0, 0, 0, '', 0, 0, 0, 0 }
end

local function open_slices(count)
  local slices = count[B] ~= '' and cmsgpack.unpack(count[B]) or {}
  for index = #slices + 1, count[K] do slices[index] = 0 end
  slices[count[N] % count[K] + 1] = count[C]
  return slices
end

local function adopts(spec, count, slice_us, version)
  if count[W] == slice_us and count[U] == spec[WINDOW] then return false end
  return count[W] == 0 or count[S] == 0 or version > count[V] or spec[WINDOW] > count[U]
end

local function advance_slices(spec, count, now, version)
  local own_slice_us = ceil(spec[WINDOW] / spec[SLICES])
  if adopts(spec, count, own_slice_us, version) then
    count[W], count[U], count[V] = own_slice_us, spec[WINDOW], version
    count[K] = ceil(spec[WINDOW] / own_slice_us) + 1
    count[B], count[C], count[N] = '', count[S], floor(now / own_slice_us)
    return count[S] > 0
  end
  local slice = floor(now / count[W])
  local length = count[K]
  if slice <= count[N] then return false end
  local slices = open_slices(count)
  for passed = max(count[N], slice - length) + 1, slice do
    count[S] = count[S] - slices[passed % length + 1]
    slices[passed % length + 1] = 0
  end
  count[N], count[C], count[B] = slice, 0, cmsgpack.pack(slices)
  return false
end

local function advance_window(spec, count, now, version)
  if adopts(spec, count, spec[WINDOW], version) then
    count[W], count[U], count[V] = spec[WINDOW], spec[WINDOW], version
    count[N] = floor(now / spec[WINDOW])
    return count[S] > 0
  end
  local window = floor(now / count[W])
  if window > count[N] then
    count[N] = window
    count[S] = 0
  end
  return false
end

local function rescale(spec, count, now)
  if count[R] == spec[LIMIT] and count[W] == spec[WINDOW] then return false end
  local in_debt = count[F] > now and count[R] > 0
  if in_debt then
    local units = ((count[F] - now) * count[R]) / count[W]
    count[F] = now + ceil((units * spec[WINDOW]) / spec[LIMIT])
  end
  count[R] = spec[LIMIT]
  count[W] = spec[WINDOW]
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
  if spec[ALGORITHM] == LEAKY then return count[F] <= now end
  if spec[ALGORITHM] == TOKEN then
    return max(count[F], now) + units_to_us(spec, cost) - now <= burst_us(spec)
  end
  return count[S] + cost <= spec[LIMIT]
end

local function capacity(spec)
  return spec[ALGORITHM] == TOKEN and spec[BURST] > 0 and spec[BURST] or spec[LIMIT]
end

local function wait_us(spec, count, now, cost)
  if spec[ALGORITHM] == LEAKY then return count[F] - now end
  if spec[ALGORITHM] == TOKEN then
    return max(count[F], now) + units_to_us(spec, cost) - burst_us(spec) - now
  end
  if spec[ALGORITHM] == FIXED then return (count[N] + 1) * count[W] - now end
  local length = count[K]
  local slices = open_slices(count)
  local missing = count[S] + cost - spec[LIMIT]
  for slice = max(0, count[N] - length + 1), count[N] do
    missing = missing - slices[slice % length + 1]
    if missing <= 0 then return (slice + length) * count[W] - now end
  end
  return spec[WINDOW]
end

local function charge(spec, count, now, cost)
  if is_bucket(spec) then
    count[F] = max(count[F], now) + units_to_us(spec, cost)
    return
  end
  count[S] = count[S] + cost
  if spec[ALGORITHM] == SLIDING then count[C] = count[C] + cost end
end

local function stamp_of(spec, count)
  if spec[ALGORITHM] == LEAKY then return count[F] end
  return is_bucket(spec) and 0 or count[N]
end

local function refund(spec, count, now, stamp, units)
  -- Of a leaky bucket only the last turn can be returned.
  if spec[ALGORITHM] == LEAKY and stamp ~= count[F] then return end
  if is_bucket(spec) then
    count[F] = max(now, count[F] - units_to_us(spec, units))
  elseif spec[ALGORITHM] == FIXED then
    if stamp == count[N] then count[S] = max(0, count[S] - units) end
  elseif stamp > count[N] - count[K] and stamp <= count[N] then
    local slices = open_slices(count)
    local index = stamp % count[K] + 1
    local back = min(units, slices[index])
    slices[index] = slices[index] - back
    count[S], count[C] = count[S] - back, slices[count[N] % count[K] + 1]
    count[B] = cmsgpack.pack(slices)
  end
end

local function overrun(spec, count, now, units)
  if is_bucket(spec) then
    local most = now + burst_us(spec) + spec[WINDOW]
    count[F] = min(max(count[F], now) + units_to_us(spec, units), max(most, count[F]))
    return
  end
  local most = max(0, 2 * spec[LIMIT] - count[S])
  charge(spec, count, now, min(units, most))
end

local function remaining(spec, count, now)
  if spec[ALGORITHM] == LEAKY then return count[F] <= now and 1 or 0 end
  if spec[ALGORITHM] == TOKEN then
    local free_us = burst_us(spec) - max(0, count[F] - now)
    return max(0, floor((free_us * spec[LIMIT]) / spec[WINDOW]))
  end
  return max(0, spec[LIMIT] - count[S])
end

local function used(spec, count, now)
  if not is_bucket(spec) then return count[S] end
  local whole = spec[BURST] == 0 and spec[LIMIT] or spec[BURST]
  if spec[ALGORITHM] == LEAKY then whole = 1 end
  return whole - remaining(spec, count, now)
end

local function life_us(count, now)
  local window_us = count[W] == 0 and count[U] or (count[N] + max(1, count[K])) * count[W] - now
  return max(0, count[F] - now, window_us)
end

local function rebase(count, back_us)
  if count[R] > 0 then count[F] = count[F] - back_us else count[W] = 0 end
end
