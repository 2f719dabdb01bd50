-- Notes how many requests a pod made in the last minute. Twin of store/limits/reports.ts.
-- KEYS: the guard's reports, a hash of pods
-- ARGV: time (see include/server-time), pod, requests
-- reply: 1
-- expiry: two minutes
local LIFE_US = 60000000
--- @include server-time
local now = server_us()
local reports = redis.call('HGETALL', KEYS[1])
for index = 1, #reports, 2 do
  local at = tonumber(string.match(reports[index + 1], ':(%d+)$'))
  if at <= now - LIFE_US then redis.call('HDEL', KEYS[1], reports[index]) end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ':' .. string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], 120000)
return 1
