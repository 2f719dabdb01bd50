-- A pod of a guard reports that it is alive, and learns whether the store has lost data. Twin of
-- store/pulse.ts.
-- KEYS: the guard's epoch; the pods that have a share, by the time of their last pulse
-- ARGV: time (see include/server-time), pod, part, epoch and pulse it knows, a name for a new epoch
-- reply: { epoch, now us, pulses, lost us, joined, pods, rank }
-- expiry: five minutes after the last pulse
local QUIET_US, KEPT_US = 2500000, 30000000
local GATHERING_US, FAR_AHEAD_US = 10000000, 1000000
local LIFE_MS = 300000
local MOST_RANKED = 256
--- @include server-time
local now = server_us()
local pod, part, epoch = ARGV[2], ARGV[3], ARGV[4]
local count = tonumber(ARGV[5])
local function us(value) return string.format('%.0f', value) end

-- The run id changes after a restart and a failover. Users without permission for INFO rely on the pulses.
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or '-'
if ARGV[1] ~= '' then run = '-' end

local stored = redis.call('GET', KEYS[1])
local name, known_run, pulses, started, lost
if stored then
  name, known_run, pulses, started, lost = string.match(stored, '^(%S+) (%S+) (%d+) (%d+) (%d+)$')
  pulses, started, lost = tonumber(pulses), tonumber(started), tonumber(lost)
end
if not name or known_run ~= run or (name == epoch and pulses < count) then
  lost = (name or epoch ~= '') and now or 0
  name, pulses, started = ARGV[6], 0, now
elseif epoch ~= '' and epoch ~= name and lost == 0 and now - started < GATHERING_US then
  lost = now
end
pulses = pulses + 1
local record = table.concat({ name, run, us(pulses), us(started), us(lost) }, ' ')
redis.call('SET', KEYS[1], record, 'PX', LIFE_MS)

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', us(now - KEPT_US))
redis.call('ZREMRANGEBYSCORE', KEYS[2], '(' .. us(now + FAR_AHEAD_US), '+inf')
if part == 'gone' then redis.call('ZREM', KEYS[2], pod)
elseif part == 'joined' then redis.call('ZADD', KEYS[2], us(now), pod)
elseif part == 'untrusted' then redis.call('ZADD', KEYS[2], us(now - QUIET_US), pod) end
redis.call('PEXPIRE', KEYS[2], LIFE_MS)
local joined = redis.call('ZCOUNT', KEYS[2], '(' .. us(now - QUIET_US), '+inf')
local pods = redis.call('ZCARD', KEYS[2])
local rank = 0
local names = redis.call('ZRANGE', KEYS[2], 0, MOST_RANKED - 1)
for index = 1, #names do
  if names[index] < pod then rank = rank + 1 end
end
return { name, now, pulses, lost, joined, pods, rank }
