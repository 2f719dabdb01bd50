-- Whether the counts of a closed breaker open it. Twin of store/breaker/trip-conditions.ts, which
-- explains the rules.
--- @include breaker-tally
local FINISHED_PER_IGNORED = 20
local SIDE_BY_SIDE, FINE_SHARE, DEVIATIONS = 2, 0.6, 3
local SILENT_SHARE, LONGEST_SILENCE_US, CHANCE = 1 / 30, 1000000, 1e-6

local function is_reached(share, bad, all, lately)
  if share == 0 or bad / all < share then return false end
  if lately < SIDE_BY_SIDE then return true end
  local fine = FINE_SHARE * share
  return bad >= min(all, fine * all + DEVIATIONS * math.sqrt(fine * (1 - fine) * all))
end

local function holds(spec, calls, failures, slow, in_flight, run, lately)
  if spec[CONSECUTIVE] > 0 and run >= spec[CONSECUTIVE] and run >= in_flight then return true end
  if calls < spec[MINIMUM_CALLS] or calls == 0 then return false end
  local all = calls + max(0, in_flight - ceil(calls / FINISHED_PER_IGNORED))
  return is_reached(spec[FAILURE_RATE], failures, all, lately)
    or is_reached(spec[SLOW_RATE], slow, all, lately)
end

local function failed_since(failed, answered_us)
  local sum = 0
  for _, each in ipairs(failed) do
    if each[1] > answered_us then sum = sum + each[2] end
  end
  return sum
end

local function hangs(spec, failed, overdue, answered_us, usual_us, calls, failures, now)
  if spec[FAILURE_RATE] == 0 or failed == 0 or failed < spec[MINIMUM_CALLS] or answered_us == 0 then return false end
  if failed / (failed + overdue) < spec[FAILURE_RATE] then return false end
  local silence_us = LONGEST_SILENCE_US
  if spec[WINDOW] > 0 then silence_us = min(silence_us, spec[WINDOW] * SILENT_SHARE) end
  if now - answered_us < usual_us + silence_us then return false end
  local calls_before = max(0, calls - failed)
  local failures_before = max(0, min(calls_before, failures - failed))
  local usual_rate = (failures_before + 1) / (calls_before + 2)
  return failed * math.log(usual_rate) <= math.log(CHANCE)
end

-- Pods that compare as equal are equal, so the order in which `pairs` returns them does not matter.
local function is_hanging(tally, spec, leave_out, now)
  local pods, usual_us = {}, 0
  for _, hung in pairs(tally.hung) do
    pods[#pods + 1] = { failed_since(hung[3], tally.answered_us), hung[4] }
    usual_us = max(usual_us, hung[2])
  end
  if #pods <= leave_out then return false end
  table.sort(pods, function(one, other)
    if one[1] ~= other[1] then return one[1] > other[1] end
    return one[2] > other[2]
  end)
  local failed, overdue = 0, 0
  for index = leave_out + 1, #pods do
    failed, overdue = failed + pods[index][1], overdue + pods[index][2]
  end
  local calls, failures = totals(tally)
  return hangs(spec, failed, overdue, tally.answered_us, usual_us, calls, failures, now)
end

local function in_flight_of(tally, pod)
  return tally.in_flight[pod] and tally.in_flight[pod][1] or 0
end

-- bad: where in counts the bad ones are. Pods that compare as equal have equal sums, so the order in
-- which `pairs` returns them does not matter.
local function sum_of_worst(tally, bad, share, most)
  local worst = {}
  for pod, counts in pairs(tally.sums) do
    local all = counts[CALLS] + in_flight_of(tally, pod)
    worst[#worst + 1] = { counts[bad] - share * all, all, counts[CALLS], counts[bad] }
  end
  table.sort(worst, function(one, other)
    if one[1] ~= other[1] then return one[1] > other[1] end
    if one[2] ~= other[2] then return one[2] > other[2] end
    return one[3] > other[3]
  end)
  local calls, bad_calls, in_flight = 0, 0, 0
  for index = 1, min(most, #worst) do
    local _, all, finished, failed = unpack(worst[index])
    calls, bad_calls, in_flight = calls + finished, bad_calls + failed, in_flight + all - finished
  end
  return calls, bad_calls, in_flight
end

local function holds_without_worst(tally, spec, leave_out)
  local calls, failures, slow, in_flight, run, lately = totals(tally)
  local runs = {}
  for _, each in pairs(tally.runs) do runs[#runs + 1] = each[1] end
  table.sort(runs, function(one, other) return one > other end)
  for index = 1, min(leave_out, #runs) do run = run - runs[index] end
  local failing, failed, failing_flight = sum_of_worst(tally, FAILURES, spec[FAILURE_RATE], leave_out)
  local lagging, lagged, lagging_flight = sum_of_worst(tally, SLOW_CALLS, spec[SLOW_RATE], leave_out)
  return holds(spec, calls - failing, failures - failed, 0, in_flight - failing_flight, run, lately)
    or holds(spec, calls - lagging, 0, slow - lagged, in_flight - lagging_flight, 0, lately)
end

local function pod_hangs(tally, spec, pod, counts, now)
  local hung = tally.hung[pod]
  if not hung then return false end
  local answered_us, usual_us, failed, overdue = unpack(hung)
  local since = failed_since(failed, answered_us)
  return hangs(spec, since, overdue, answered_us, usual_us, counts[CALLS], counts[FAILURES], now)
end

local function half_agree(tally, spec, quorum, pods, now)
  local agree = 0
  for pod, counts in pairs(tally.sums) do
    local run = tally.runs[pod] and tally.runs[pod][2] or 0
    local in_flight = in_flight_of(tally, pod)
    local lately = tally.in_flight[pod] and tally.in_flight[pod][3] or 0
    if
      holds(spec, counts[CALLS], counts[FAILURES], counts[SLOW_CALLS], in_flight, run, lately)
      or pod_hangs(tally, spec, pod, counts, now)
    then
      agree = agree + 1
    end
  end
  return agree >= max(quorum, ceil(pods / 2))
end

local function is_tripped(tally, spec, live, now)
  local pods = live
  if live == 0 then
    for _ in pairs(tally.sums) do pods = pods + 1 end
  end
  local quorum = min(spec[QUORUM], pods)
  if quorum <= 1 then return holds(spec, totals(tally)) or is_hanging(tally, spec, 0, now) end
  return holds_without_worst(tally, spec, quorum - 1)
    or is_hanging(tally, spec, quorum - 1, now)
    or half_agree(tally, spec, quorum, pods, now)
end
