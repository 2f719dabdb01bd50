-- Reads a queue for displays: the numbers of jobs, or some of the jobs. Twin of countJobs, readJob and
-- listDead in store/queue/maintenance.ts.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state; id of a job, or empty; count of dead letters, from which on; tenants: the
--       number of tenants with the most waiting jobs to list (see include/tenant-depths)
-- reply: waiting in each of the four priorities, delayed, active, ended, dead, paused 0|1, oldest us,
--        expired leases, { tenants }; then each job asked for:
--        { id, state, data, priority, tenant, key, attempt, attempts, age us, progress, text }
-- expiry: nothing is written
local BEFORE_QUEUE = 0
--- @include queue-state
--- @include read-job
--- @include tenant-depths
local oldest_us = 0
for priority = 0, PRIORITIES - 1 do
  local id = first_of(priority, 1)[1]
  if id then oldest_us = math.max(oldest_us, queue_now - (tonumber(id) or queue_now)) end
end
local dead = meta[SIZE + DEAD_SET]
local reply = {
  meta[LINED], meta[LINED + 1], meta[LINED + 2], meta[LINED + 3], meta[SIZE + DELAYED_SET],
  meta[SIZE + LEASES], meta[SIZE + ENDS] - dead, dead, meta[IS_PAUSED], oldest_us, meta[EXPIRED_LEASES],
  settings().tenants > 0 and top_tenants(settings().tenants) or {},
}
if settings().id ~= '' then reply[#reply + 1] = view_of(settings().id) end
if settings().count > 0 then
  local from = settings().from
  local ids = redis.call('ZRANGE', KEYS[BEFORE_QUEUE + DEAD_SET], from, from + settings().count - 1)
  for _, id in ipairs(ids) do reply[#reply + 1] = view_of(id) end
end
return reply
