-- What a closed breaker has counted, and whether that opens it. Twin of store/breaker/tally.ts, which
-- explains the rules.
-- Specs are arrays:
local CONSECUTIVE, FAILURE_RATE, SLOW_RATE, WINDOW, WINDOW_CALLS, MINIMUM_CALLS = 1, 2, 3, 4, 5, 6
local OPEN_US, OPEN_FACTOR, MAX_OPEN_US, PROBES, SUCCESSES, PROBE_LEASE, QUORUM = 7, 8, 9, 10, 11, 12, 13
-- So are counts:
local CALLS, FAILURES, SLOW_CALLS = 1, 2, 3
-- slices: { start us, counts by pod }; recent: { pod, kind, times }; in flight: { calls, until us, the last number except 0 };
-- runs: { since any success, since the pod's own, at us }
local FAILURE, SLOW, NOTHING, REPEATED_SUCCESS, REPEATED_FAILURE = 1, 2, 3, 4, 5
local WINDOW_SLICES = 10
local RUN_LIFE_US = 300000000
local ALL_PODS = '*'
local FINISHED_PER_IGNORED = 20
local SIDE_BY_SIDE, FINE_SHARE, DEVIATIONS = 2, 0.6, 3
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function empty_tally()
  return { slices = {}, recent = {}, sums = {}, in_flight = {}, runs = {} }
end

local function add(all, pod, counts, sign)
  local sum = all[pod] or { 0, 0, 0 }
  for index = 1, 3 do sum[index] = sum[index] + sign * counts[index] end
  all[pod] = sum[CALLS] ~= 0 and sum or nil
end

local function counts_of(kind, times)
  return { times, kind == FAILURE and times or 0, kind == SLOW and times or 0 }
end

local function slice_us_of(spec)
  return ceil(spec[WINDOW] / WINDOW_SLICES)
end

local function slice_start(spec, now)
  local slice_us = slice_us_of(spec)
  return floor(now / slice_us) * slice_us
end

local function window_start(spec, now)
  return slice_start(spec, now) - WINDOW_SLICES * slice_us_of(spec)
end

local function drop_slices(tally, until_us)
  while tally.slices[1] and tally.slices[1][1] <= until_us do
    for pod, counts in pairs(tally.slices[1][2]) do add(tally.sums, pod, counts, -1) end
    table.remove(tally.slices, 1)
  end
end

local function keep_latest_calls(tally, most)
  local over = -most
  for index = 1, #tally.recent do over = over + tally.recent[index][3] end
  while over > 0 do
    local oldest = tally.recent[1]
    local dropped = min(over, oldest[3])
    add(tally.sums, oldest[1], counts_of(oldest[2], dropped), -1)
    oldest[3] = oldest[3] - dropped
    over = over - dropped
    if oldest[3] == 0 then table.remove(tally.recent, 1) end
  end
end

local function advance(tally, spec, now)
  if spec[WINDOW_CALLS] > 0 then
    drop_slices(tally, now)
  else
    keep_latest_calls(tally, 0)
    drop_slices(tally, window_start(spec, now))
  end
  for pod, reported in pairs(tally.in_flight) do
    if reported[2] <= now then tally.in_flight[pod] = nil end
  end
  local life = spec[WINDOW] > 0 and spec[WINDOW] or RUN_LIFE_US
  for pod, run in pairs(tally.runs) do
    if now - run[3] >= life then tally.runs[pod] = nil end
  end
end

local function set_in_flight(tally, pod, reported, later, for_us, now)
  local known = tally.in_flight[pod]
  local lately = reported > 0 and reported or known and known[3] or 0
  local calls = reported + later
  if for_us == 0 or calls + lately == 0 then
    tally.in_flight[pod] = nil
    return
  end
  local until_us = reported == 0 and known and known[2] or now + for_us
  tally.in_flight[pod] = { calls, until_us, lately }
end

local function is_repeated(kind)
  return kind == REPEATED_SUCCESS or kind == REPEATED_FAILURE
end

local function count_in_calls(tally, spec, pod, kind, times)
  add(tally.sums, pod, counts_of(kind, times), 1)
  local newest = tally.recent[#tally.recent]
  if newest and newest[1] == pod and newest[2] == kind then
    newest[3] = newest[3] + times
  else
    tally.recent[#tally.recent + 1] = { pod, kind, times }
  end
  keep_latest_calls(tally, spec[WINDOW_CALLS])
end

local function slice_at(tally, start)
  local slices = tally.slices
  local index = #slices
  while index > 0 and slices[index][1] > start do index = index - 1 end
  if index > 0 and slices[index][1] == start then return slices[index][2] end
  local counts = {}
  table.insert(slices, index + 1, { start, counts })
  return counts
end

local function count_in_time(tally, spec, pod, kind, times, slices_ago, now)
  local start = slice_start(spec, now) - slices_ago * slice_us_of(spec)
  if start <= window_start(spec, now) then return end
  local counts = counts_of(kind, times)
  add(tally.sums, pod, counts, 1)
  add(slice_at(tally, start), pod, counts, 1)
end

-- outcome: { kind, times, slices ago }
local function count(tally, spec, by, outcome, now)
  local pod = spec[QUORUM] > 1 and by or ALL_PODS
  local kind, times, slices_ago = outcome[1], outcome[2], outcome[3] or 0
  if not is_repeated(kind) then
    if spec[WINDOW_CALLS] > 0 then
      count_in_calls(tally, spec, pod, kind, times)
    else
      count_in_time(tally, spec, pod, kind, times, slices_ago, now)
    end
  end
  if kind == FAILURE or kind == REPEATED_FAILURE then
    local run = tally.runs[pod] or { 0, 0, 0 }
    tally.runs[pod] = { run[1] + times, run[2] + times, now }
    return
  end
  tally.runs[pod] = nil
  for _, run in pairs(tally.runs) do run[1] = 0 end
end

-- calls, failures, slow calls, calls in flight, failures in a row, calls in flight lately
local function totals(tally)
  local calls, failures, slow, in_flight, run, lately = 0, 0, 0, 0, 0, 0
  for _, counts in pairs(tally.sums) do
    calls, failures, slow = calls + counts[CALLS], failures + counts[FAILURES], slow + counts[SLOW_CALLS]
  end
  for _, reported in pairs(tally.in_flight) do
    in_flight, lately = in_flight + reported[1], lately + reported[3]
  end
  for _, each in pairs(tally.runs) do run = run + each[1] end
  return calls, failures, slow, in_flight, run, lately
end

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

local function half_agree(tally, spec, quorum, pods)
  local agree = 0
  for pod, counts in pairs(tally.sums) do
    local run = tally.runs[pod] and tally.runs[pod][2] or 0
    local in_flight = in_flight_of(tally, pod)
    local lately = tally.in_flight[pod] and tally.in_flight[pod][3] or 0
    if holds(spec, counts[CALLS], counts[FAILURES], counts[SLOW_CALLS], in_flight, run, lately) then
      agree = agree + 1
    end
  end
  return agree >= max(quorum, ceil(pods / 2))
end

local function is_tripped(tally, spec, live)
  local pods = live
  if live == 0 then
    for _ in pairs(tally.sums) do pods = pods + 1 end
  end
  local quorum = min(spec[QUORUM], pods)
  if quorum <= 1 then return holds(spec, totals(tally)) end
  return holds_without_worst(tally, spec, quorum - 1) or half_agree(tally, spec, quorum, pods)
end
