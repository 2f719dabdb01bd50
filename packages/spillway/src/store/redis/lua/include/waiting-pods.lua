-- Pods whose request was refused and whose calls wait, in order. Twin of store/limits/waiting-pods.ts.
-- A list is { entries, next message us }, an entry { channel, text, wake us, need, waits, got }: channel and text
-- of the message that wakes the pod also identify it; need is what its first waiting call costs, by
-- id of the limit; waits: false if all its requests were granted or its calls do not wait; got: what it was granted
-- while others claimed a part, in units of 1/WHOLE of a limit, compared with the pod that was granted least.
local WHOLE = 1000000000
local GRACE_US = 1000000
local CLAIM_US = 250000
local RESERVED_US = 40000
local SHARE_RETRY_US = 50000
local MAX_WAITING = 256
local MESSAGE_US, MESSAGE_BURST_US = 100000, 900000
local WAKE_AGAIN_US = 50000
local CHANNEL, TEXT, WAKE, NEED, WAITS, GOT = 1, 2, 3, 4, 5, 6

local function none_waiting() return { {}, 0 } end

-- Drops pods that sent no request for GRACE_US after their wake time: they have stopped, or no longer wait.
local function forget_late(list, now)
  local kept, waits = {}, false
  for _, entry in ipairs(list[1]) do
    if entry[WAKE] + GRACE_US > now then
      -- An earlier release writes no GOT, something else in place of WAITS, and keeps only pods that wait.
      if not entry[GOT] then entry[WAITS], entry[GOT] = true, 0 end
      kept[#kept + 1] = entry
      waits = waits or entry[WAITS]
    end
  end
  list[1] = waits and kept or {}
end

local function waiting_life_us(list, now)
  local life = 0
  for _, entry in ipairs(list[1]) do life = max(life, entry[WAKE] + GRACE_US - now) end
  return life
end

-- How long until `cost` fits after `ahead` units that others need; 0: it fits now.
local function wait_behind_us(spec, count, now, cost, ahead)
  if cost == 0 then return 0 end
  if spec[ALGORITHM] == LEAKY then
    return max(0, count[FREE_AT_US] - now) + (ahead > 0 and units_to_us(spec, ahead) or 0)
  end
  local units = min(cost + ahead, capacity(spec))
  return fits(spec, count, now, units) and 0 or max(1, wait_us(spec, count, now, units))
end

-- The first pod that is not due, if there is enough for it and for those that are due before it. The pod
-- `own` has just sent a request and is not woken.
local function next_to_wake(list, specs, counts, now, own)
  forget_late(list, now)
  local due = {}
  for index = 1, #specs do due[index] = 0 end
  for _, entry in ipairs(list[1]) do
    if own and entry[CHANNEL] == own[1] and entry[TEXT] == own[2] then return nil end
    if entry[WAKE] > now then
      for index = 1, #specs do
        local spec = specs[index]
        local need = entry[NEED][spec[ID]] or 0
        if wait_behind_us(spec, counts[index], now, need, due[index]) > 0 then return nil end
      end
      return entry
    end
    for index = 1, #specs do
      due[index] = due[index] + (entry[NEED][specs[index][ID]] or 0)
    end
  end
  return nil
end

-- Wakes that pod, unless there were too many messages. Returns whether it sent one.
local function wake_next(list, specs, counts, now, own)
  local entry = next_to_wake(list, specs, counts, now, own)
  local from = max(list[2], now)
  if not entry or from - now > MESSAGE_BURST_US then return false end
  list[2] = from + MESSAGE_US
  entry[WAKE] = now
  redis.call('PUBLISH', entry[CHANNEL], entry[TEXT])
  return true
end

-- After how long to call wake_next again; 0: there is not enough for a further pod.
local function wake_again_us(list, specs, counts, now)
  if not next_to_wake(list, specs, counts, now) then return 0 end
  return max(WAKE_AGAIN_US, list[2] - MESSAGE_BURST_US - now)
end
