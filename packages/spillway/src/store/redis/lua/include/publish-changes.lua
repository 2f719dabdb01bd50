-- Changes of jobs that pods hear of at once. In the JSON of include/queue-state: changes { channel, guard, queue }.
-- Being told early is for speed: a server that does not let us publish must not keep the script from its work.
local function publish_changes(kind, ids)
  if #ids == 0 then return end
  local to = settings().changes
  local message = { kind = kind, guard = to.guard, queue = to.queue, ids = ids }
  redis.pcall('PUBLISH', to.channel, cjson.encode(message))
end
