-- Tries every command that the scripts use, on a separate key without data.
-- KEYS: a key that no other script uses
-- ARGV: channels that scripts publish on: the one of breakers, and one that wakes workers
-- reply: for each command that failed: its name, the error, and for PUBLISH the channel
-- expiry: a millisecond
local key = KEYS[1]
local failed = {}

local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    failed[#failed + 1] = { (...), reply.err }
    return false
  end
  return true
end

local time = redis.pcall('TIME')
if time.err then failed[1] = { 'TIME', time.err } end
-- Without an expiry nothing is written.
if try('PEXPIRE', key, 1) then
  local function gone() redis.pcall('PEXPIRE', key, 0) end
  if not time.err then try('SET', key, 1, 'PXAT', time[1] .. '001') end
  gone()
  try('SETRANGE', key, 0, '0')
  gone()
  try('HSET', key, 'field', 1)
  gone()
  try('ZADD', key, 1, 'member')
  gone()
end
try('PEXPIREAT', key, 1)
try('PTTL', key)
try('GET', key)
try('MGET', key)
try('HGET', key, 'field')
try('HGETALL', key)
try('HLEN', key)
try('HVALS', key)
try('HDEL', key, 'field')
try('ZCARD', key)
try('ZCOUNT', key, 0, 1)
try('ZRANGE', key, 0, 0)
try('ZRANGEBYSCORE', key, 0, 1)
try('ZREM', key, 'member')
try('ZSCORE', key, 'member')
try('ZREMRANGEBYSCORE', key, 0, 1)
for _, channel in ipairs(ARGV) do
  if not try('PUBLISH', channel, '') then failed[#failed][3] = channel end
end
return failed
