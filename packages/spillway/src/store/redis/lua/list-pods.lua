-- Which pods are alive, and their snapshots. Changes nothing.
-- KEYS: the group's pods; their snapshots
-- ARGV: time (see include/server-time)
-- reply: for each pod its name, us since its last beat, snapshot
--- @include server-time
local now = server_us()
local pods = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')
local reply = {}
for index = 1, #pods do
  local stored = redis.call('HGET', KEYS[2], pods[index])
  if stored then
    local at, snapshot = string.match(stored, '^(%d+) (.*)$')
    local count = #reply
    reply[count + 1], reply[count + 2] = pods[index], math.max(0, now - tonumber(at))
    reply[count + 3] = snapshot
  end
end
return reply
