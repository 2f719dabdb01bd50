-- The counts of a closed breaker. Twin of store/breaker/tally.ts, which explains the rules.
-- Specs are arrays:
local CONSECUTIVE, FAILURE_RATE, SLOW_RATE, WINDOW, WINDOW_CALLS, MINIMUM_CALLS = 1, 2, 3, 4, 5, 6
local OPEN_US, OPEN_FACTOR, MAX_OPEN_US, PROBES, SUCCESSES, PROBE_LEASE, QUORUM = 7, 8, 9, 10, 11, 12, 13
-- So are counts:
local CALLS, FAILURES, SLOW_CALLS = 1, 2, 3
-- slices: { start us, counts by pod }; recent: { pod, kind, times }; in flight: { calls, until us, the last number except 0 };
-- runs: { since any success, since the pod's own, at us };
-- hung: { answered us, usual us, failed as { start us, times }, overdue, reported us }
local FAILURE, SLOW, NOTHING, REPEATED_SUCCESS, REPEATED_FAILURE = 1, 2, 3, 4, 5
local WINDOW_SLICES = 10
local RUN_LIFE_US = 300000000
local ALL_PODS = '*'
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function empty_tally()
  return { slices = {}, recent = {}, sums = {}, in_flight = {}, runs = {}, answered_us = 0, hung = {} }
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
  for pod, hung in pairs(tally.hung) do
    if now - hung[5] >= life then tally.hung[pod] = nil end
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

-- report: { answered ago us, failed as { ago us, times }, overdue }
local function set_hung(tally, pod, report, usual_us, now)
  tally.hung[pod] = nil
  if not report or usual_us == 0 then return end
  local answered_us, failed, overdue = now - report[1], {}, report[3]
  tally.answered_us = max(tally.answered_us, answered_us)
  for index, each in ipairs(report[2]) do failed[index] = { now - each[1], each[2] } end
  if #failed == 0 and overdue == 0 then return end
  tally.hung[pod] = { answered_us, usual_us, failed, overdue, now }
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
