-- What people see of a queue: how many jobs there are, or some of them. Twin of countJobs, readJob and
-- listDead in store/queue/look-after.ts.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state; id of a job, or empty; count of dead letters, from which on; tenants: of
--       so many, those with the most, how many wait (see include/tenant-depths)
-- reply: waiting in each of the four priorities, delayed, active, ended, dead, paused 0|1, oldest us,
--        lapsed, { tenants }; then each job asked for:
--        { id, state, data, priority, tenant, key, attempt, attempts, age us, progress, text }
-- expiry: nothing is written
local BEFORE_QUEUE = 0
--- @include queue-state
--- @include tenant-depths
local oldest_us = 0
for priority = 0, PRIORITIES - 1 do
  local id = first_of(priority)
  if id then oldest_us = math.max(oldest_us, queue_now - tonumber(id)) end
end
local dead = call('ZCARD', DEAD_SET)
local counts = meta.counts
local reply = {
  counts[1], counts[2], counts[3], counts[4], call('ZCARD', DELAYED_SET), call('ZCARD', LEASES), call('ZCARD', ENDS) - dead, dead,
  meta.paused, oldest_us, meta.lapsed, queue_input.tenants > 0 and top_tenants(queue_input.tenants) or {},
}
if queue_input.id ~= '' then reply[#reply + 1] = view_of(queue_input.id) end
if queue_input.count > 0 then
  local to = queue_input.from + queue_input.count - 1
  for _, id in ipairs(call('ZRANGE', DEAD_SET, queue_input.from, to)) do
    reply[#reply + 1] = view_of(id)
  end
end
return reply
