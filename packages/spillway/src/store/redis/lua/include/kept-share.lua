-- How long a job has to wait for one limit, so that calls outside the job queue get their share.
-- Twin of store/queue/kept-share.ts.
local function even_wait_us(spec, count, now, cost, share)
  if spec[ALGORITHM] == SLIDING then
    local each = (spec[LIMIT] - ceil(spec[LIMIT] * share)) / (spec[SLICES] + 1)
    local even = floor((count[NEWEST_SLICE] + 1) * each) - floor(count[NEWEST_SLICE] * each)
    return count[NEWEST_UNITS] > 0 and count[NEWEST_UNITS] + cost > even and (count[NEWEST_SLICE] + 1) * count[SLICE_US] - now or 0
  end
  if spec[ALGORITHM] == FIXED then
    local elapsed = now - window_end_us(spec, count[SLICE_US], count[NEWEST_SLICE] - 1)
    local due = floor(((count[UNITS] + cost - 1) * count[SLICE_US]) / spec[LIMIT])
    return count[UNITS] > 0 and elapsed < due and due - elapsed or 0
  end
  return 0
end

-- The units that have to be free before a job of this cost is handed out.
local function units_with_share(spec, cost, share)
  local most = capacity(spec)
  return cost == 0 and 0 or cost + min(most - cost, ceil(most * share))
end

local function job_wait_us(spec, count, now, cost, share)
  if cost == 0 then return 0 end
  local wanted = units_with_share(spec, cost, share)
  local longest = 0
  if not fits(spec, count, now, wanted) then longest = max(1, wait_us(spec, count, now, wanted)) end
  return share == 0 and longest or max(longest, even_wait_us(spec, count, now, cost, share))
end
