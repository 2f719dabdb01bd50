-- Deletes keys of a queue that are of another type than the queue's scripts need: nothing in them belongs to it,
-- and every script would fail on them. The queue then goes on as one that has lost these keys.
-- The script that failed has not saved its counts, so all jobs are counted again.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state
-- reply: number of keys that were deleted
-- expiry: as before
local BEFORE_QUEUE = 0
local TYPES = {
  'string', 'zset', 'zset', 'zset', 'zset', 'zset', 'zset', 'hash', 'hash', 'hash', 'hash', 'hash', 'hash',
}
local deleted = 0
for index, key in ipairs(KEYS) do
  -- A user that may not run these commands goes on with the error it had.
  local found = redis.pcall('TYPE', key).ok
  if found and found ~= 'none' and found ~= TYPES[index] then
    local reply = redis.pcall('DEL', key)
    if type(reply) == 'number' then deleted = deleted + reply end
  end
end
if deleted == 0 then return 0 end

--- @include queue-state
local counted = new_meta()
meta[APART] = counted[APART]
for index = LINED, META_LENGTH do meta[index] = counted[index] end
close_queue()
return deleted
