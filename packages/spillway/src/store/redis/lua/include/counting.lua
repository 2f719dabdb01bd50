-- How each algorithm counts. Twin of store/limits/counting.ts.
-- spec: { id, algorithm, limit, window, slices, burst, vendor }; count: { n, s, w, c, k, b, f, r, u, v }
-- Unlike there, the slices (b, k of them) stay packed inside the state, and the newest one (c) is
-- kept beside them: most trips touch no other, and need not unpack the rest.
local SLIDING, TOKEN, LEAKY, FIXED = 1, 2, 3, 4
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function empty_count()
  return { n = 0, s = 0, w = 0, c = 0, k = 0, b = '', f = 0, r = 0, u = 0, v = 0 }
end

local function open_slices(count)
  local slices = count.b ~= '' and cmsgpack.unpack(count.b) or {}
  for index = #slices + 1, count.k do slices[index] = 0 end
  slices[count.n % count.k + 1] = count.c
  return slices
end

local function adopts(spec, count, slice_us, version)
  if count.w == slice_us and count.u == spec.window then return false end
  return count.w == 0 or count.s == 0 or version > count.v or spec.window > count.u
end

local function advance_slices(spec, count, now, version)
  local own_slice_us = ceil(spec.window / spec.slices)
  if adopts(spec, count, own_slice_us, version) then
    count.w, count.u, count.v = own_slice_us, spec.window, version
    count.k = ceil(spec.window / own_slice_us) + 1
    count.b, count.c, count.n = '', count.s, floor(now / own_slice_us)
    return count.s > 0
  end
  local slice = floor(now / count.w)
  local length = count.k
  if slice <= count.n then return false end
  local slices = open_slices(count)
  for passed = max(count.n, slice - length) + 1, slice do
    count.s = count.s - slices[passed % length + 1]
    slices[passed % length + 1] = 0
  end
  count.n, count.c, count.b = slice, 0, cmsgpack.pack(slices)
  return false
end

local function advance_window(spec, count, now, version)
  if adopts(spec, count, spec.window, version) then
    count.w, count.u, count.v = spec.window, spec.window, version
    count.n = floor(now / spec.window)
    return count.s > 0
  end
  local window = floor(now / count.w)
  if window > count.n then
    count.n = window
    count.s = 0
  end
  return false
end

local function rescale(spec, count, now)
  if count.r == spec.limit and count.w == spec.window then return false end
  local in_debt = count.f > now and count.r > 0
  if in_debt then
    local units = ((count.f - now) * count.r) / count.w
    count.f = now + ceil((units * spec.window) / spec.limit)
  end
  count.r = spec.limit
  count.w = spec.window
  return in_debt
end

local function advance(spec, count, now, version)
  if spec.algorithm == SLIDING then return advance_slices(spec, count, now, version) end
  if spec.algorithm == FIXED then return advance_window(spec, count, now, version) end
  return rescale(spec, count, now)
end

local function is_bucket(spec)
  return spec.algorithm == TOKEN or spec.algorithm == LEAKY
end

local function units_to_us(spec, units)
  return ceil((units * spec.window) / spec.limit)
end

local function burst_us(spec)
  return units_to_us(spec, spec.burst == 0 and spec.limit or spec.burst)
end

local function fits(spec, count, now, cost)
  if cost == 0 then return true end
  if spec.algorithm == LEAKY then return count.f <= now end
  if spec.algorithm == TOKEN then
    return max(count.f, now) + units_to_us(spec, cost) - now <= burst_us(spec)
  end
  return count.s + cost <= spec.limit
end

local function capacity(spec)
  return spec.algorithm == TOKEN and spec.burst > 0 and spec.burst or spec.limit
end

local function wait_us(spec, count, now, cost)
  if spec.algorithm == LEAKY then return count.f - now end
  if spec.algorithm == TOKEN then
    return max(count.f, now) + units_to_us(spec, cost) - burst_us(spec) - now
  end
  if spec.algorithm == FIXED then return (count.n + 1) * count.w - now end
  local length = count.k
  local slices = open_slices(count)
  local missing = count.s + cost - spec.limit
  for slice = max(0, count.n - length + 1), count.n do
    missing = missing - slices[slice % length + 1]
    if missing <= 0 then return (slice + length) * count.w - now end
  end
  return spec.window
end

-- How many of one and the same cost fit, one after the other.
local function how_many_fit(spec, count, now, cost, most)
  if cost == 0 then return most end
  local fit
  if spec.algorithm == LEAKY then
    fit = count.f <= now and 1 or 0
  elseif spec.algorithm == TOKEN then
    fit = floor((burst_us(spec) - max(count.f, now) + now) / units_to_us(spec, cost))
  else
    fit = floor((spec.limit - count.s) / cost)
  end
  return max(0, min(most, fit))
end

local function charge(spec, count, now, cost, times)
  if is_bucket(spec) then
    count.f = max(count.f, now) + units_to_us(spec, cost) * times
    return
  end
  count.s = count.s + cost * times
  if spec.algorithm == SLIDING then count.c = count.c + cost * times end
end

local function stamp_of(spec, count)
  return is_bucket(spec) and 0 or count.n
end

local function refund(spec, count, now, stamp, units)
  if is_bucket(spec) then
    count.f = max(now, count.f - units_to_us(spec, units))
  elseif spec.algorithm == FIXED then
    if stamp == count.n then count.s = max(0, count.s - units) end
  elseif stamp > count.n - count.k and stamp <= count.n then
    local slices = open_slices(count)
    local index = stamp % count.k + 1
    local back = min(units, slices[index])
    slices[index] = slices[index] - back
    count.s, count.c = count.s - back, slices[count.n % count.k + 1]
    count.b = cmsgpack.pack(slices)
  end
end

local function overrun(spec, count, now, units)
  if is_bucket(spec) then
    local most = now + burst_us(spec) + spec.window
    count.f = min(max(count.f, now) + units_to_us(spec, units), max(most, count.f))
    return
  end
  local most = max(0, 2 * spec.limit - count.s)
  charge(spec, count, now, min(units, most), 1)
end

local function remaining(spec, count, now)
  if spec.algorithm == LEAKY then return count.f <= now and 1 or 0 end
  if spec.algorithm == TOKEN then
    local free_us = burst_us(spec) - max(0, count.f - now)
    return max(0, floor((free_us * spec.limit) / spec.window))
  end
  return max(0, spec.limit - count.s)
end

local function used(spec, count, now)
  if not is_bucket(spec) then return count.s end
  local whole = spec.burst == 0 and spec.limit or spec.burst
  if spec.algorithm == LEAKY then whole = 1 end
  return whole - remaining(spec, count, now)
end

local function life_us(spec, count, now)
  if is_bucket(spec) then return max(0, count.f - now) end
  if spec.algorithm == FIXED then return count.w end
  return count.k * count.w
end

local function rebase(count, back_us)
  if count.r > 0 then count.f = count.f - back_us else count.w = 0 end
end
