-- Days of a time zone. Twin of store/calendar-day.ts.
-- A limit's day: { quiet us, offset us, then each change of the clock: at us, offset us afterwards }
local DAY_US = 86400000000
local QUIET_US, FIRST_OFFSET = 1, 2

local function day_at(day, at_us)
  local offset_us = day[FIRST_OFFSET]
  for index = FIRST_OFFSET + 1, #day, 2 do
    if day[index] <= at_us then offset_us = day[index + 1] end
  end
  return math.floor((at_us + offset_us) / DAY_US)
end

local function day_end_us(day, number)
  local end_us = (number + 1) * DAY_US - day[FIRST_OFFSET]
  for index = FIRST_OFFSET + 1, #day, 2 do
    if end_us < day[index] then return end_us end
    end_us = math.max(day[index], (number + 1) * DAY_US - day[index + 1])
  end
  return end_us
end

local function window_at(spec, slice_us, at_us)
  if spec[DAY] and slice_us == DAY_US then return day_at(spec[DAY], at_us) end
  return math.floor(at_us / slice_us)
end

local function window_end_us(spec, slice_us, window)
  if spec[DAY] and slice_us == DAY_US then return day_end_us(spec[DAY], window) end
  return (window + 1) * slice_us
end

-- A call that is granted now may reach the vendor on the next day.
local function is_ending(spec, count, now)
  if not spec[DAY] or count[SLICE_US] ~= DAY_US then return false end
  return now >= day_end_us(spec[DAY], count[NEWEST_SLICE]) - spec[DAY][QUIET_US]
end
