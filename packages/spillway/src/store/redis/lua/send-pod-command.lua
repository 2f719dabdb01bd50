-- Leaves a command for a pod, which receives it with its next heartbeat. Twin of store/memory/memory-pods.ts.
-- KEYS: the group's pods, by the end of their lives; the commands for them
-- ARGV: time (see include/server-time), pod, life of the command us, command
-- reply: 1, or 0 if there is no such pod
-- expiry: when the last command is over
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
