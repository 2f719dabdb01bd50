-- What a breaker has seen while closed, and whether that trips it. Twin of store/breaker/tally.ts.
-- Specs are arrays:
local CONSECUTIVE, FAILURE_RATE, SLOW_RATE, WINDOW, WINDOW_CALLS, MINIMUM_CALLS = 1, 2, 3, 4, 5, 6
local OPEN_US, OPEN_FACTOR, MAX_OPEN_US, PROBES, SUCCESSES, PROBE_LEASE, QUORUM = 7, 8, 9, 10, 11, 12, 13
-- Counts are, too: calls, failures, slow.
local FAILURE, SLOW, NOTHING = 1, 2, 3
local TALLY_SLICES = 10
local RUN_LIFE_US = 300000000
local EVERYBODY = '*'
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function empty_tally()
  return { slices = {}, recent = {}, sums = {}, runs = {} }
end

local function add(all, pod, counts, sign)
  local sum = all[pod] or { 0, 0, 0 }
  for index = 1, 3 do sum[index] = sum[index] + sign * counts[index] end
  all[pod] = sum[1] ~= 0 and sum or nil
end

local function counts_of(kind, times)
  return { times, kind == FAILURE and times or 0, kind == SLOW and times or 0 }
end

local function slice_us_of(spec)
  return ceil(spec[WINDOW] / TALLY_SLICES)
end

local function start_of(now, slice_us)
  return floor(now / slice_us) * slice_us
end

-- Those that began then, or earlier.
local function forget_slices(tally, start)
  while tally.slices[1] and tally.slices[1][1] <= start do
    for pod, counts in pairs(tally.slices[1][2]) do add(tally.sums, pod, counts, -1) end
    table.remove(tally.slices, 1)
  end
end

-- But for the newest of them, so many.
local function forget_calls(tally, most)
  local over = -most
  for index = 1, #tally.recent do over = over + tally.recent[index][3] end
  while over > 0 do
    local oldest = tally.recent[1]
    local gone = min(over, oldest[3])
    add(tally.sums, oldest[1], counts_of(oldest[2], gone), -1)
    oldest[3] = oldest[3] - gone
    over = over - gone
    if oldest[3] == 0 then table.remove(tally.recent, 1) end
  end
end

local function advance(tally, spec, now)
  if spec[WINDOW_CALLS] > 0 then
    forget_slices(tally, now)
  else
    forget_calls(tally, 0)
    local slice_us = slice_us_of(spec)
    forget_slices(tally, start_of(now, slice_us) - TALLY_SLICES * slice_us)
  end
  local life = spec[WINDOW] > 0 and spec[WINDOW] or RUN_LIFE_US
  for pod, run in pairs(tally.runs) do
    if now - run[3] >= life then tally.runs[pod] = nil end
  end
end

local function add_calls(tally, pod, kind, times)
  local newest = tally.recent[#tally.recent]
  if newest and newest[1] == pod and newest[2] == kind then
    newest[3] = newest[3] + times
  else
    tally.recent[#tally.recent + 1] = { pod, kind, times }
  end
end

local function slice_at(tally, start)
  local newest = tally.slices[#tally.slices]
  if newest and newest[1] >= start then return newest[2] end
  local counts = {}
  tally.slices[#tally.slices + 1] = { start, counts }
  return counts
end

local function count(tally, spec, by, kind, times, now)
  local pod = spec[QUORUM] > 1 and by or EVERYBODY
  local counts = counts_of(kind, times)
  add(tally.sums, pod, counts, 1)
  if spec[WINDOW_CALLS] > 0 then
    add_calls(tally, pod, kind, times)
    forget_calls(tally, spec[WINDOW_CALLS])
  else
    add(slice_at(tally, start_of(now, slice_us_of(spec))), pod, counts, 1)
  end
  if kind == FAILURE then
    local run = tally.runs[pod] or { 0, 0, 0 }
    tally.runs[pod] = { run[1] + times, run[2] + times, now }
    return
  end
  tally.runs[pod] = nil
  for _, run in pairs(tally.runs) do run[1] = 0 end
end

local function totals(tally)
  local calls, failures, slow, run = 0, 0, 0, 0
  for _, counts in pairs(tally.sums) do
    calls, failures, slow = calls + counts[1], failures + counts[2], slow + counts[3]
  end
  for _, each in pairs(tally.runs) do run = run + each[1] end
  return calls, failures, slow, run
end

local function holds(spec, calls, failures, slow, run)
  if spec[CONSECUTIVE] > 0 and run >= spec[CONSECUTIVE] then return true end
  if calls < spec[MINIMUM_CALLS] or calls == 0 then return false end
  if spec[FAILURE_RATE] > 0 and failures / calls >= spec[FAILURE_RATE] then return true end
  return spec[SLOW_RATE] > 0 and slow / calls >= spec[SLOW_RATE]
end

-- bad: where in counts the bad ones are. Equals are equal in all that is added up, so that it does
-- not matter in which order `pairs` brings them.
local function sum_of_worst(tally, bad, share, most)
  local worst = {}
  for _, counts in pairs(tally.sums) do
    worst[#worst + 1] = { counts[bad] - share * counts[1], counts[1], counts[bad] }
  end
  table.sort(worst, function(one, other)
    if one[1] ~= other[1] then return one[1] > other[1] end
    return one[2] > other[2]
  end)
  local calls, bad_calls = 0, 0
  for index = 1, min(most, #worst) do
    calls, bad_calls = calls + worst[index][2], bad_calls + worst[index][3]
  end
  return calls, bad_calls
end

local function holds_without_worst(tally, spec, leave_out)
  local calls, failures, slow, run = totals(tally)
  local runs = {}
  for _, each in pairs(tally.runs) do runs[#runs + 1] = each[1] end
  table.sort(runs, function(one, other) return one > other end)
  for index = 1, min(leave_out, #runs) do run = run - runs[index] end
  local failing, failed = sum_of_worst(tally, 2, spec[FAILURE_RATE], leave_out)
  local lagging, lagged = sum_of_worst(tally, 3, spec[SLOW_RATE], leave_out)
  return holds(spec, calls - failing, failures - failed, 0, run)
    or holds(spec, calls - lagging, 0, slow - lagged, 0)
end

local function half_agree(tally, spec, quorum, pods)
  local agree = 0
  for pod, counts in pairs(tally.sums) do
    local run = tally.runs[pod]
    if holds(spec, counts[1], counts[2], counts[3], run and run[2] or 0) then agree = agree + 1 end
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
