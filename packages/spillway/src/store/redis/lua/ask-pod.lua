-- Wants something of a pod: it hears of it with its next beat. Twin of store/memory/memory-pods.ts.
-- KEYS: the group's pods, by when they are gone; what is wanted of them
-- ARGV: time (see include/server-time), pod, for us, what
-- reply: 1, or 0 if there is no such pod
-- expiry: when the last wish is over
--- @include server-time
local now = server_us()
local pod = ARGV[2]
local for_us = tonumber(ARGV[3])
local gone = redis.call('ZSCORE', KEYS[1], pod)
if not gone or tonumber(gone) <= now then return 0 end
redis.call('HSET', KEYS[2], pod, string.format('%.0f ', now + for_us) .. ARGV[4])
local life_ms = math.ceil(for_us / 1000)
if redis.call('PTTL', KEYS[2]) < life_ms then redis.call('PEXPIRE', KEYS[2], life_ms) end
return 1
