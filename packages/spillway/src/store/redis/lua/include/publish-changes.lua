-- Publishes job changes to all pods. Setting in the JSON of include/queue-state: changes { channel, guard, queue }.
-- Publishing only lets pods react sooner, so the script continues if the server forbids PUBLISH.
local function publish_changes(kind, ids)
  if #ids == 0 then return end
  local to = settings().changes
  local message = { kind = kind, guard = to.guard, queue = to.queue, ids = ids }
  redis.pcall('PUBLISH', to.channel, cjson.encode(message))
end
