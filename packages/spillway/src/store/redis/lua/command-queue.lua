-- Runs an operator's command on a job queue. Twin of commandQueue in store/queue/maintenance.ts.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state and include/publish-changes; command: pause, resume, cancel, replay or drop; id; keep us
-- reply: 1 if the command had an effect
-- expiry: see include/queue-state
local BEFORE_QUEUE = 0
--- @include queue-state
--- @include queue-moves
--- @include publish-changes
local command, id = settings().command, settings().id

local function set_paused(paused)
  if meta[IS_PAUSED] == paused then return 0 end
  meta[IS_PAUSED] = paused
  if paused == 1 then return 1 end
  meta[BLOCKED] = 0
  wake_one()
  return 1
end

-- One that is leased becomes a dead letter when its turn ends.
local function bury(job)
  local score = redis.call('ZSCORE', KEYS[BEFORE_QUEUE + WAITING_SET], id)
  if score then
    redis.call('ZREM', KEYS[BEFORE_QUEUE + WAITING_SET], id)
    count_lined(meta)
  elseif remove(DELAYED_SET, id) == 0 then
    return 0
  end
  end_job(id, job, DEAD, UNREADABLE_TEXT, settings().keep)
  return 1
end

local function cancel(job)
  if job.unreadable then return bury(job) end
  if job[STATE] == ACTIVE then
    job[CANCEL] = 1
    save_job(id, job)
    publish_changes('cancel', { id })
    return 1
  end
  if job[STATE] == WAITING then remove_waiting(id, job)
  elseif job[STATE] == DELAYED then remove(DELAYED_SET, id)
  else return 0 end
  end_job(id, job, CANCELLED, '', settings().keep)
  return 1
end

local function replay(job)
  remove(DEAD_SET, id)
  remove(ENDS, id)
  redis.call('HDEL', KEYS[BEFORE_QUEUE + TEXTS], id)
  job[ATTEMPT], job[UNCOUNTED], job[DEADLINE], job[TAG] = 0, 0, 0, 0
  count_open(id, job[TENANT])
  line(id, job)
  save_job(id, job)
  if meta[BLOCKED] <= queue_now then wake_one() end
  return 1
end

local function run()
  if command == 'pause' then return set_paused(1) end
  if command == 'resume' then return set_paused(0) end
  local job = read_job(id)
  if not job then return 0 end
  if command == 'cancel' then return cancel(job) end
  if job[STATE] ~= DEAD then return 0 end
  if job.unreadable and (command == 'replay' or not redis.call('ZSCORE', KEYS[BEFORE_QUEUE + DEAD_SET], id)) then
    return 0
  end
  if command == 'replay' then return replay(job) end
  forget(id, job)
  return 1
end

present_queue()
local reply = run()
close_queue()
return reply
