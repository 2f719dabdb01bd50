-- Hands out jobs, each with its permits of all limits, as many as the breaker allows, in one atomic step.
-- So a worker only gets jobs that it can run. Twin of reserveJobs in store/queue/reserve-jobs.ts.
-- KEYS: lane, guard, breaker, then the queue's (see include/queue-state)
-- ARGV: time; settings as JSON, which include/lane-state and include/queue-state read, in it park us,
--       dead us, units (of each limit), keep (share); tag (see include/lane-head; empty: there are no
--       limits); what include/breaker-state reads, as JSON, with probes: names for them (empty: there is
--       none); worker, wanted, lease us, aging us; then see include/finish-jobs
-- reply: blocked (0 no, 1 empty, 2 limited, 3 vendor, 4 breaker, 5 paused), wait us, probing 0|1,
--        { take-permits' long reply }, { view }, { finish-jobs' reply }, then each job: { id, turn, attempt, attempts, data,
--        priority, tenant, key, age us, left us, uncounted, costs … }
-- expiry: as in take-permits, take-probes and include/queue-state
local BEFORE_QUEUE = 3
local BREAKER_AT = 3
local BEFORE_ENDS = 9
local NOTHING_IN_THE_WAY, NOTHING_WAITS, BY_LIMIT, BY_VENDOR, BY_BREAKER, BY_PAUSE = 0, 1, 2, 3, 4, 5
local FORGOTTEN = 16
local MOST_TOO_LATE = 100
local PROBING_US = 250000
local ISOLATED_US = 1000000
local RECHECK_US = 1000000
local MOST_IN_SIGHT = 10
local TOO_LATE_TEXT = 'its deadline has passed'
--- @include queue-state
--- @include finish-jobs
local limits_tag, breaker_input, worker = ARGV[3], ARGV[4], ARGV[5]
local wanted = tonumber(ARGV[6])
local lease_us = tonumber(ARGV[7])
local aging_us = tonumber(ARGV[8])

local function open_limits()
  --- @include counting
  --- @include lane-state
  --- @include permits-reply
  --- @include kept-share
  local book = { paused_us = max(0, paused_until() - now) }

  function book.costs_of(cost)
    local costs = {}
    for index = 1, limit_count do
      local unit = input.units[index]
      costs[index] = min(capacity(specs[index]), cost and cost[unit] or (unit == 'requests' and 1 or 0))
    end
    return costs
  end

  function book.wait_us(costs)
    local longest = 0
    for index = 1, limit_count do
      longest = max(longest, job_wait_us(specs[index], counts[index], now, costs[index], input.keep))
    end
    return longest
  end

  function book.note_full(costs)
    for index = 1, limit_count do
      local units = units_with_share(specs[index], costs[index], input.keep)
      changed = note_full(specs[index], counts[index], now, units) or changed
    end
  end

  function book.charge(costs)
    for index = 1, limit_count do
      if costs[index] > 0 then charge(specs[index], counts[index], now, costs[index]) end
    end
  end

  function book.close(granted, wait)
    local paused = book.paused_us > 0
    return permits_reply(granted, paused and book.paused_us or wait, paused)
  end
  return book
end

local function check_breaker(KEYS, ARGV)
  --- @include breaker-tally
  --- @include breaker-state
  local spec = input.spec
  local state = read_breaker(KEYS[1])
  local before = state.version
  local now = present(state, spec)
  local check = { blocked = NOTHING_IN_THE_WAY, wait = 0, most = wanted, probing = false }
  if next(state.isolations) then
    check.blocked, check.wait = BY_BREAKER, ISOLATED_US
  elseif state.kind == OPEN then
    check.blocked, check.wait = BY_BREAKER, max(1, state.open_until_us - now)
  elseif state.kind == HALF_OPEN then
    check.probing = true
    check.most = min(free_probes(state, spec), #input.probes)
    if check.most == 0 and wanted > 0 then check.blocked, check.wait = BY_BREAKER, PROBING_US end
  end

  function check.close(taken)
    if check.probing then
      for index = 1, taken do state.probes[input.probes[index]] = now + spec[PROBE_LEASE] end
    end
    if state.version ~= before or (check.probing and taken > 0) then
      return keep(KEYS[1], input.name, state, spec, now, before)
    end
    return view_of(state, now)
  end
  return check
end

-- By priority: the first waiting jobs. No job is added while the script runs.
local heads = {}

local function head_of(priority)
  local head = heads[priority]
  if not head or head.at > #head.ids then
    head = { ids = first_of(priority, math.min(wanted, MOST_IN_SIGHT)), at = 1 }
    heads[priority] = head
  end
  local id = head.ids[head.at]
  head.job = head.job or id and record_of(id)
  return head
end

-- Also returns whether the job is damaged: a key was lost, or a record cannot be read.
local function next_of()
  local best, best_us
  for priority = 0, PRIORITIES - 1 do
    if meta[LINED + priority] > 0 then
      local head = head_of(priority)
      local job = head.job
      if not job or job.unreadable or job[PRIORITY] ~= priority then return head, true end
      local worth_us = job[READY] + priority * aging_us
      if not best or worth_us < best_us then best, best_us = head, worth_us end
    end
  end
  return best
end

local function mend(head)
  local line, id, job = KEYS[BEFORE_QUEUE + WAITING_SET], head.ids[head.at], head.job
  local score = id and tonumber(redis.call('ZSCORE', line, id))
  local priority = score and math.max(0, math.min(PRIORITIES - 1, math.floor(score / SPAN)))
  if id and not job then
    redis.call('ZREM', line, id)
    unusual().forget_lost(id)
  elseif id and (job.unreadable or job[PRIORITY] ~= priority) then
    redis.call('ZREM', line, id)
    job = unreadable(id)
    job[PRIORITY] = priority
    unusual().end_job(id, job, DEAD, UNREADABLE_TEXT, settings().dead)
  end
  count_lined(meta)
  heads = {}
end

-- The first of its priority is the next one from now on.
local function leave(head)
  remove_waiting(head.ids[head.at], head.job)
  head.at, head.job = head.at + 1, nil
end

local function lease(id, job)
  local priority, tag, tenant = job[PRIORITY], job[TAG], job[TENANT]
  if tag > meta[REACHED + priority] then meta[REACHED + priority] = tag end
  if tenant ~= '' then
    local field = priority .. ':' .. tenant
    if (tonumber(redis.call('HGET', KEYS[BEFORE_QUEUE + TAGS], field) or 0) or 0) <= tag then
      redis.call('HDEL', KEYS[BEFORE_QUEUE + TAGS], field)
    end
  end
  -- Its stored record is unchanged (see include/queue-state).
  job[TURN], job[ATTEMPT] = job[TURN] + 1, job[ATTEMPT] + 1
  schedule(LEASES, queue_now + lease_us, id .. ':' .. job[TURN])
end

local function reserved(id, job, costs)
  local reply = {
    id, job[TURN], job[ATTEMPT], job[ATTEMPTS], data_of(id, job), job[PRIORITY], job[TENANT],
    job[KEY], queue_now - (tonumber(id) or queue_now), job[DEADLINE] == 0 and 0 or job[DEADLINE] - queue_now,
    job[UNCOUNTED],
  }
  for _, cost in ipairs(costs) do reply[#reply + 1] = cost end
  return reply
end

local function claim_alarm(wait)
  local due_us = wait > 0 and queue_now + wait or math.huge
  local delayed_us = unusual().first_score(DELAYED_SET)
  local lease_us = unusual().first_score(LEASES)
  if delayed_us then due_us = math.min(due_us, math.max(delayed_us, queue_now + 1)) end
  if lease_us then due_us = math.min(due_us, math.max(lease_us, queue_now + 1)) end
  if due_us == math.huge then return 0 end
  if meta[ALARM] > queue_now and meta[ALARM] <= due_us then
    return lease_us and math.max(0, lease_us - queue_now) + RECHECK_US or 0
  end
  meta[ALARM] = due_us
  return due_us - queue_now
end

-- A lane without limits has no state.
local NO_LIMITS = {
  paused_us = 0,
  costs_of = function() return {} end,
  wait_us = function() return 0 end,
  charge = function() end,
  close = function(granted, wait) return { granted, queue_server, wait, 0, 0 } end,
}

local NO_BREAKER = {
  blocked = NOTHING_IN_THE_WAY, wait = 0, most = wanted, probing = false, close = function() return {} end,
}

present_queue()
local finished = finish_all()
if meta[FIRST + ENDS] <= queue_now then unusual().forget_ended(FORGOTTEN + 2 * wanted) end
if meta[FIRST + DELAYED_SET] <= queue_now or meta[FIRST + LEASES] <= queue_now then
  unusual().bring_back(settings().dead)
end
remove(PARKED, worker)
local limits = limits_tag ~= '' and open_limits() or NO_LIMITS
local check = breaker_input ~= '' and check_breaker({ KEYS[3] }, { ARGV[1], breaker_input }) or NO_BREAKER

local blocked = meta[IS_PAUSED] == 1 and BY_PAUSE or check.blocked
local wait = blocked == BY_BREAKER and check.wait or 0
if blocked == NOTHING_IN_THE_WAY and limits.paused_us > 0 then
  blocked, wait = BY_VENDOR, limits.paused_us
end
local jobs, too_late = {}, 0
while blocked == NOTHING_IN_THE_WAY and #jobs < math.min(wanted, check.most) do
  local head, lost = next_of()
  if not head then
    blocked = NOTHING_WAITS
    break
  end
  local id, job = head.ids[head.at], head.job
  if lost or job[DEADLINE] > 0 and job[DEADLINE] <= queue_now then
    if lost then
      mend(head)
    else
      leave(head)
      unusual().end_job(id, job, DEAD, TOO_LATE_TEXT, settings().dead)
    end
    too_late = too_late + 1
    if too_late == MOST_TOO_LATE then break end
  else
    local costs = limits.costs_of(job[COST])
    wait = limits.wait_us(costs)
    if wait > 0 then
      blocked = BY_LIMIT
      limits.note_full(costs)
      break
    end
    limits.charge(costs)
    -- In this order, a job whose lease cannot be written keeps its position.
    lease(id, job)
    leave(head)
    jobs[#jobs + 1] = reserved(id, job, costs)
  end
end
local has_all = blocked == NOTHING_IN_THE_WAY and #jobs == wanted
if blocked == NOTHING_IN_THE_WAY and not has_all and too_late < MOST_TOO_LATE then
  blocked, wait = BY_BREAKER, PROBING_US
end
local take = limits.close(#jobs, blocked == BY_LIMIT and wait or 0)
local view = check.close(#jobs)
local shut = blocked > NOTHING_WAITS
meta[BLOCKED] = shut and queue_now + wait or 0
if has_all and meta[SIZE + PARKED] > 0 and waiting_in() > 0 then unusual().wake_one() end
if not has_all and settings().park > 0 then unusual().park(worker, queue_now + settings().park) end
local poll_us = has_all and 0 or claim_alarm(shut and wait or 0)
close_queue()
return { blocked, poll_us, check.probing and 1 or 0, take, view, finished, unpack(jobs) }
