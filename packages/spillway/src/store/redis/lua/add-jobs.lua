-- Adds jobs, as many as there is room for, and wakes one worker for each. Twin of addJobs in
-- store/queue/add-jobs.ts.
-- KEYS: see include/queue-state
-- ARGV: see include/queue-state; most: the number of jobs that may wait, be delayed or run;
--       per_tenant: the same limit for one tenant; jobs: for each { priority, delay us,
--       deadline us, key, tenant, cost, attempts }; then the data of each
-- reply: number of jobs that wait, are delayed or run; the number of jobs of the tenant whose job was
--        refused because of per_tenant, or -1; then for each added job its id, new 0|1
-- expiry: see include/queue-state
local BEFORE_QUEUE = 0
local BEFORE_DATA = 2
local FORGOTTEN = 16
-- Longer data is kept apart, so that it is read only when it is handed out.
local LONG = 512
--- @include queue-state
--- @include queue-moves
local jobs, most = settings().jobs, settings().most
present_queue()
-- The last request may have given it a shorter life.
if meta[EXPIRY] * 1000 < queue_server + settings().life then renew() end
forget_ended(FORGOTTEN + 2 * #jobs)
local reply = { 0, -1 }

local function size()
  return waiting_in() + meta[SIZE + DELAYED_SET] + meta[SIZE + LEASES]
end

local function next_id()
  meta[LAST] = math.max(meta[LAST] + 1, queue_now)
  return string.format('%016.0f', meta[LAST])
end

local function add(id, new_job, data)
  local priority, delay, deadline, key, tenant, cost, attempts = unpack(new_job)
  local job = {
    DELAYED, priority, 0, 0, attempts, 0, 0, deadline == 0 and 0 or queue_now + deadline, tenant,
    key, next(cost) and cost or false, '', 0, #data <= LONG and data, 0,
  }
  -- Before it is lined up: a key of the wrong type must not leave behind a job without its data.
  if #data > LONG then redis.call('HSET', KEYS[BEFORE_QUEUE + DATA], id, data) end
  if key ~= '' then redis.call('HSET', KEYS[BEFORE_QUEUE + IDS_BY_KEY], key, id) end
  if delay > 0 then
    schedule(DELAYED_SET, queue_now + delay, id)
  else
    line(id, job)
  end
  save_job(id, job)
  count_open(id, tenant)
  if is_apart(job) then meta[APART] = meta[APART] + 1 end
  if delay == 0 and meta[BLOCKED] <= queue_now then wake_one() end
  local alarm_is_earlier = meta[ALARM] > queue_now and meta[ALARM] <= queue_now + delay
  if delay > 0 and not alarm_is_earlier then wake_one() end
end

-- A key whose job was lost is free again.
local function id_by_key(key)
  local id = key ~= '' and redis.call('HGET', KEYS[BEFORE_QUEUE + IDS_BY_KEY], key)
  return id and redis.call('HGET', KEYS[BEFORE_QUEUE + JOBS], id) and id
end

for index, new_job in ipairs(jobs) do
  local known = id_by_key(new_job[4])
  if not known and size() >= most then break end
  local of_tenant = known and 0 or open_jobs_of(new_job[5])
  if of_tenant >= settings().per_tenant then
    reply[2] = of_tenant
    break
  end
  local id = known or next_id()
  if not known then add(id, new_job, ARGV[BEFORE_DATA + index]) end
  reply[#reply + 1] = id
  reply[#reply + 1] = known and 0 or 1
end
reply[1] = size()
close_queue()
return reply
