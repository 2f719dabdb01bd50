-- Hands out jobs, each with its permits of all limits, and as far as the breaker lets it: in one step,
-- so that what cannot be called is not handed out. Twin of reserveJobs in store/queue/reserve-jobs.ts.
-- KEYS: lane, guard, breaker, then the queue's (see include/queue-state)
-- ARGV: see include/lane-state and include/queue-state, which read the same JSON; in it: worker, wanted,
--       lease us, park us, aging us, dead us, units (of each limit), keep (share), breaker (what
--       include/breaker-state reads, as JSON, with probes: names for them; empty: there is none);
--       finish, if jobs have ended: as in finish-jobs, and then the text of each
-- reply: blocked (0 no, 1 empty, 2 limited, 3 vendor, 4 breaker, 5 paused), wait us, probing 0|1,
--        { take-permits' long reply }, { view }, { finish-jobs' reply }, then each job: { id, turn, attempt, attempts, data,
--        priority, tenant, key, age us, left us, costs … }
-- expiry: as in take-permits, take-probes and include/queue-state
local BEFORE_QUEUE = 3
local BREAKER_AT = 3
local BEFORE_TEXTS = 3
local NO, EMPTY, LIMITED, VENDOR, BREAKER, PAUSED = 0, 1, 2, 3, 4, 5
local FORGOTTEN = 16
local MOST_TOO_LATE = 100
local PROBING_US = 250000
local ISOLATED_US = 1000000
local SECOND_LOOK_US = 1000000
--- @include queue-state
--- @include finish-jobs
local wanted = queue_input.wanted

local function open_limits()
  --- @include counting
  --- @include lane-state
  --- @include kept-share
  local book = { paused_us = max(0, paused_until() - now) }

  function book.costs_of(cost)
    local costs = {}
    for index = 1, limit_count do
      local unit = input.units[index]
      costs[index] = min(capacity(specs[index]), cost[unit] or (unit == 'requests' and 1 or 0))
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

  function book.charge(costs)
    for index = 1, limit_count do
      if costs[index] > 0 then charge(specs[index], counts[index], now, costs[index]) end
    end
  end

  function book.close(granted, wait)
    local reply = { granted, now }
    for index = 1, limit_count do reply[#reply + 1] = stamp_of(specs[index], counts[index]) end
    reply[#reply + 1] = book.paused_us > 0 and book.paused_us or wait
    reply[#reply + 1] = book.paused_us > 0 and 1 or 0
    reply[#reply + 1] = guard.v
    for index = 1, limit_count do reply[#reply + 1] = capacity(specs[index]) end
    if guard.v > version then
      for index = 1, limit_count do
        local spec = spec_stored(own_specs[index], guard)
        for _, field in ipairs({ LIMIT, WINDOW, BURST, SLICES }) do reply[#reply + 1] = spec[field] end
      end
    end
    if granted > 0 or changed then keep() end
    return reply
  end
  return book
end

local function open_gate(KEYS, ARGV)
  --- @include breaker-tally
  --- @include breaker-state
  local spec = input.spec
  local state = read_breaker(KEYS[1])
  local before = state.v
  local now = present(state, spec)
  local gate = { blocked = NO, wait = 0, most = wanted, probing = false }
  if next(state.holds) then
    gate.blocked, gate.wait = BREAKER, ISOLATED_US
  elseif state.kind == OPEN then
    gate.blocked, gate.wait = BREAKER, max(1, state.u - now)
  elseif state.kind == HALF_OPEN then
    gate.probing = true
    gate.most = max(0, min(spec[PROBES] - size(state.probes) - size(state.late), #input.probes))
    if gate.most == 0 and wanted > 0 then gate.blocked, gate.wait = BREAKER, PROBING_US end
  end

  function gate.close(taken)
    if gate.probing then
      for index = 1, taken do state.probes[input.probes[index]] = now + spec[PROBE_LEASE] end
    end
    if state.v ~= before or (gate.probing and taken > 0) then
      return keep(KEYS[1], input.name, state, spec, now, before)
    end
    return view_of(state, now)
  end
  return gate
end

local function next_of()
  local best, best_id, best_us
  for priority = 0, PRIORITIES - 1 do
    if meta.counts[priority + 1] > 0 then
      local id = first_of(priority)
      local job = read_job(id)
      local worth_us = job[READY] + priority * queue_input.aging
      if not best or worth_us < best_us then best, best_id, best_us = job, id, worth_us end
    end
  end
  return best_id, best
end

local function lease(id, job)
  unline(id, job)
  local priority, tag, tenant = job[PRIORITY], job[TAG], job[TENANT]
  if tag > meta.reached[priority + 1] then meta.reached[priority + 1] = tag end
  if tenant ~= '' then
    local field = priority .. ':' .. tenant
    if tonumber(call('HGET', TAGS, field) or 0) <= tag then call('HDEL', TAGS, field) end
  end
  job[STATE], job[TURN], job[ATTEMPT] = ACTIVE, job[TURN] + 1, job[ATTEMPT] + 1
  save_job(id, job)
  schedule(LEASES, queue_now + queue_input.lease, id)
end

local function reserved(id, job, costs)
  local reply = {
    id, job[TURN], job[ATTEMPT], job[ATTEMPTS], call('HGET', DATA, id), job[PRIORITY], job[TENANT],
    job[KEY], queue_now - tonumber(id), job[DEADLINE] == 0 and 0 or job[DEADLINE] - queue_now,
  }
  for _, cost in ipairs(costs) do reply[#reply + 1] = cost end
  return reply
end

local function claim_alarm(wait)
  local due_us = wait > 0 and queue_now + wait or math.huge
  local delayed_us = first_score(DELAYED_SET)
  local lease_us = first_score(LEASES)
  if delayed_us then due_us = math.min(due_us, math.max(delayed_us, queue_now + 1)) end
  if lease_us then due_us = math.min(due_us, math.max(lease_us, queue_now + 1)) end
  if due_us == math.huge then return 0 end
  if meta.alarm > queue_now and meta.alarm <= due_us then
    return lease_us and math.max(0, lease_us - queue_now) + SECOND_LOOK_US or 0
  end
  meta.alarm = due_us
  return due_us - queue_now
end

-- Of a lane that has no limits nothing is known, and nothing is kept.
local NO_LIMITS = {
  paused_us = 0,
  costs_of = function() return {} end,
  wait_us = function() return 0 end,
  charge = function() end,
  close = function(granted, wait) return { granted, queue_server, wait, 0, 0 } end,
}

present_queue()
local finished = queue_input.finish and finish_all(queue_input.finish, BEFORE_TEXTS) or {}
forget_ended(FORGOTTEN + 2 * wanted)
bring_back(queue_input.dead)
unpark(queue_input.worker)
local limits = #queue_input.l > 0 and open_limits() or NO_LIMITS
local gate = { blocked = NO, wait = 0, most = wanted, probing = false, close = function() return {} end }
if queue_input.breaker ~= '' then gate = open_gate({ KEYS[3] }, { ARGV[1], queue_input.breaker }) end

local blocked = meta.paused == 1 and PAUSED or gate.blocked
local wait = blocked == BREAKER and gate.wait or 0
if blocked == NO and limits.paused_us > 0 then blocked, wait = VENDOR, limits.paused_us end
local jobs, too_late = {}, 0
while blocked == NO and #jobs < math.min(wanted, gate.most) do
  local id, job = next_of()
  if not id then
    blocked = EMPTY
    break
  end
  if job[DEADLINE] > 0 and job[DEADLINE] <= queue_now then
    unline(id, job)
    end_job(id, job, DEAD, TOO_LATE, queue_input.dead)
    too_late = too_late + 1
    if too_late == MOST_TOO_LATE then break end
  else
    local costs = limits.costs_of(job[COST])
    wait = limits.wait_us(costs)
    if wait > 0 then
      blocked = LIMITED
      break
    end
    limits.charge(costs)
    lease(id, job)
    jobs[#jobs + 1] = reserved(id, job, costs)
  end
end
local has_all = blocked == NO and #jobs == wanted
if blocked == NO and not has_all and too_late < MOST_TOO_LATE then
  blocked, wait = BREAKER, PROBING_US
end
local take = limits.close(#jobs, blocked == LIMITED and wait or 0)
local view = gate.close(#jobs)
local shut = blocked > EMPTY
meta.blocked = shut and queue_now + wait or 0
if has_all and waiting_in() > 0 then wake_one() end
if not has_all and queue_input.park > 0 then
  park(queue_input.worker, queue_now + queue_input.park)
end
local look_again = has_all and 0 or claim_alarm(shut and wait or 0)
close_queue()
return { blocked, look_again, gate.probing and 1 or 0, take, view, finished, unpack(jobs) }
