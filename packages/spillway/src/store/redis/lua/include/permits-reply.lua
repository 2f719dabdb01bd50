-- The long reply of take-permits, and of jobs that were reserved with their permits. Saves changed state.

-- Set if the lane has to be saved, but not its guard: pods wait, or calls wait for a limit that learns.
local changed_lane = false

local function permits_reply(granted, wait, paused)
  local reply = { granted, now }
  for index = 1, limit_count do reply[#reply + 1] = stamp_of(specs[index], counts[index], now) end
  reply[#reply + 1] = wait
  reply[#reply + 1] = paused and 1 or 0
  reply[#reply + 1] = guard.v
  for index = 1, limit_count do reply[#reply + 1] = capacity(specs[index]) end
  if wait > 0 then
    for index = 1, limit_count do
      reply[#reply + 1] = remaining(specs[index], counts[index], now)
    end
  end
  if guard.v > version then
    for index = 1, limit_count do
      local spec = spec_stored(own_specs[index], guard)
      for _, field in ipairs({ LIMIT, WINDOW, BURST, SLICES }) do reply[#reply + 1] = spec[field] end
    end
  end
  if granted > 0 or changed or changed_lane then keep() end
  return reply
end
