-- Deletes keys of a queue that have another type than the queue's scripts need. Another program wrote them,
-- and every script would fail on them. The queue continues as after a loss of these keys. The script that found
-- them has failed halfway, without saving its counts, so the jobs are counted again.
-- KEYS, ARGV: see include/queue-state
-- reply: number of keys that were deleted
-- expiry: see include/queue-state
local BEFORE_QUEUE = 0
local TYPES = {
  'string', 'zset', 'zset', 'zset', 'zset', 'zset', 'zset', 'hash', 'hash', 'hash', 'hash', 'hash', 'hash',
}
local deleted = 0
for index, key in ipairs(KEYS) do
  -- A user without permission for these commands gets the original error.
  local found = redis.pcall('TYPE', key).ok
  if found and found ~= 'none' and found ~= TYPES[index] then
    local reply = redis.pcall('DEL', key)
    if type(reply) == 'number' then deleted = deleted + reply end
  end
end
if deleted == 0 then return 0 end

--- @include queue-state
present_queue()
-- Deleted hashes come back, and with an expiry.
renew()
count_parts(meta)
close_queue()
return deleted
