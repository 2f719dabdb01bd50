-- Stores the heartbeat and the snapshot of a pod, removes pods without heartbeats, and returns the command for
-- this pod. Twin of store/memory/memory-pods.ts.
-- KEYS: the group's pods, by the time at which each expires; their snapshots; commands for them
-- ARGV: time (see include/server-time), pod, life us, snapshot
-- reply: number of live pods, the command for this one, or ''
-- expiry: a second after the last pod has expired
local FAR_AHEAD_US = 60000000
local MARGIN_MS = 1000
--- @include server-time
local now = server_us()
local pod = ARGV[2]
local life = tonumber(ARGV[3])
local function forget(from, to)
  local gone = redis.call('ZRANGEBYSCORE', KEYS[1], from, to)
  for index = 1, #gone do
    redis.call('ZREM', KEYS[1], gone[index])
    redis.call('HDEL', KEYS[2], gone[index])
    redis.call('HDEL', KEYS[3], gone[index])
  end
end
forget('-inf', string.format('%.0f', now))
-- No pod can have set an expiry this far ahead: the clock was set back since.
forget(string.format('(%.0f', now + 2 * life + FAR_AHEAD_US), '+inf')
redis.call('ZADD', KEYS[1], string.format('%.0f', now + life), pod)
redis.call('HSET', KEYS[2], pod, string.format('%.0f ', now) .. ARGV[4])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local life_ms = math.ceil((tonumber(last[2]) - now) / 1000) + MARGIN_MS
redis.call('PEXPIRE', KEYS[1], life_ms)
redis.call('PEXPIRE', KEYS[2], life_ms)
local command = ''
local stored = redis.call('HGET', KEYS[3], pod)
if stored then
  local until_us, text = string.match(stored, '^(%d+) (.*)$')
  if tonumber(until_us) > now then command = text else redis.call('HDEL', KEYS[3], pod) end
end
return { redis.call('ZCARD', KEYS[1]), command }
