-- Corrects what permits cost: unused units go back to the slice in which they were booked, if that
-- still counts; units beyond the booked cost become bounded debt. Units that go back wake the pod that
-- has waited longest, if there is enough for it. Resent under the same number, it does nothing.
-- KEYS: lane, guard, the pod's last sequence number
-- ARGV: see include/lane-state; sequence number; settlements as { limit (from 1), stamp, delta }
-- reply: after how long (us) to settle nothing, so that the next waiting pod is woken; 0: not needed
-- expiry: lane and guard as in take-permits; the sequence number ten minutes
--- @include counting
--- @include lane-state
local last = redis.call('GET', KEYS[3])
if last and tonumber(last) >= input.sequence then return 0 end
redis.call('SET', KEYS[3], string.format('%.0f', input.sequence), 'PX', 600000)
local frees = #input.settlements == 0
for _, settlement in ipairs(input.settlements) do
  local index, stamp, delta = settlement[1], settlement[2], settlement[3]
  frees = frees or delta < 0
  if delta < 0 then refund(specs[index], counts[index], now, stamp, -delta)
  elseif delta > 0 then overrun(specs[index], counts[index], now, delta) end
end
local again = 0
if frees then
  wake_next(waiting, specs, counts, now)
  again = wake_again_us(waiting, specs, counts, now)
end
keep()
return again
