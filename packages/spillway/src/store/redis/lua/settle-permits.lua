-- Corrects what permits cost: unused units go back to where they were booked, while that counts;
-- used ones beyond the booking become bounded debt. Sent again under the same number, it does nothing.
-- KEYS: lane, guard, the pod's last sequence number
-- ARGV: see include/lane-state; then sequence number, number of settlements, and for each: limit
--       (from 1), stamp, delta
-- reply: 1 applied, 0 known already
-- expiry: lane and guard as in take-permits; the sequence number ten minutes
local last = redis.call('GET', KEYS[3])
local sequence = tonumber(ARGV[4 + 7 * tonumber(ARGV[3])])
if last and tonumber(last) >= sequence then return 0 end
redis.call('SET', KEYS[3], string.format('%.0f', sequence), 'PX', 600000)
--- @include counting
--- @include lane-state
local settlement_count = tonumber(ARGV[argument + 1])
for number = 0, settlement_count - 1 do
  local at = argument + 2 + 3 * number
  local index = tonumber(ARGV[at])
  local stamp = tonumber(ARGV[at + 1])
  local delta = tonumber(ARGV[at + 2])
  if delta < 0 then refund(specs[index], counts[index], now, stamp, -delta)
  elseif delta > 0 then overrun(specs[index], counts[index], now, delta) end
end
keep()
return 1
