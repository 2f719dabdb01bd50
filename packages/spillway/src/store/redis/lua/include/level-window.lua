-- User limits as exact sliding windows. Twin of store/levels/sliding-window.ts.
-- A log of charges is an array, oldest first: time in us, units, time, units and so on. It is stored packed, with each
-- time but the first as the difference to the one before.
local MOST_CHARGES = 60

local function unpack_log(packed)
  if not packed then return {} end
  local log = cmsgpack.unpack(packed)
  for index = 3, #log, 2 do log[index] = log[index] + log[index - 2] end
  return log
end

local function pack_log(log)
  local packed = { log[1], log[2] }
  for index = 3, #log, 2 do packed[index], packed[index + 1] = log[index] - log[index - 2], log[index + 1] end
  return cmsgpack.pack(packed)
end

-- The part of the window that a time belongs to: charges of one part share an entry.
local function part_of(at_us, limit, window_us)
  if limit <= MOST_CHARGES then return at_us end
  return math.floor(at_us / math.ceil(window_us / MOST_CHARGES))
end

-- The window at `now`: its log without expired charges, its units, its time, and whether it was rebased.
local function open_window(stored, limit, window_us, now)
  local newest = stored[#stored - 1] or 0
  local rebased = newest - now > SET_BACK_US
  local time = rebased and now or math.max(now, newest)
  local log, units = {}, 0
  for index = 1, #stored, 2 do
    local at_us = math.min(stored[index], time)
    if at_us + window_us > time then
      log[#log + 1] = at_us
      log[#log + 1] = stored[index + 1]
      units = units + stored[index + 1]
    end
  end
  return { log = log, units = units, time = time, rebased = rebased, limit = limit, window_us = window_us }
end

local function window_reset_us(window, now)
  local newest = window.log[#window.log - 1]
  return newest and newest + window.window_us - now or 0
end

local function window_wait_us(window, cost, now)
  local missing = window.units + math.min(cost, window.limit) - window.limit
  if missing <= 0 then return 0 end
  for index = 1, #window.log, 2 do
    missing = missing - window.log[index + 1]
    if missing <= 0 then return window.log[index] + window.window_us - now end
  end
  return window.window_us
end

local function charge_window(window, cost)
  local log, limit, units = window.log, window.limit, math.min(cost, window.limit)
  local last = #log - 1
  window.units = window.units + units
  local part = part_of(window.time, limit, window.window_us)
  if last > 0 and part_of(log[last], limit, window.window_us) == part then
    log[last], log[last + 1] = window.time, log[last + 1] + units
  else
    log[#log + 1] = window.time
    log[#log + 1] = units
  end
end

-- Returns units that were charged at this time, if they still count. Units that are not found there are taken
-- from earlier charges, so later charges count for too long, never too short.
local function refund_window(window, cost, at_us)
  local log, limit = window.log, window.limit
  local left, part = math.min(cost, limit), part_of(at_us, limit, window.window_us)
  for index = #log - 1, 1, -2 do
    if left == 0 then return end
    if part_of(log[index], limit, window.window_us) <= part then
      local back = math.min(left, log[index + 1])
      log[index + 1] = log[index + 1] - back
      window.units, left = window.units - back, left - back
      if log[index + 1] == 0 then
        table.remove(log, index + 1)
        table.remove(log, index)
      end
    end
  end
end
