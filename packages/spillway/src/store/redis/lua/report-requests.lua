-- Notes how many requests a pod made in the last minute. Twin of store/limits/reports.ts.
-- KEYS: the guard's reports, a hash of pods
-- ARGV: time in microseconds instead of the server's (tests only; empty in use), pod, requests
-- reply: 1
-- expiry: two minutes
local LIFE_US = 60000000
local now
if ARGV[1] ~= '' then
  now = tonumber(ARGV[1])
else
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local reports = redis.call('HGETALL', KEYS[1])
for index = 1, #reports, 2 do
  local at = tonumber(string.match(reports[index + 1], ':(%d+)$'))
  if at <= now - LIFE_US then redis.call('HDEL', KEYS[1], reports[index]) end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ':' .. string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], 120000)
return 1
