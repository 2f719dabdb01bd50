-- Takes permits, and counts the outcomes of calls that are reported with the same request: what take-permits
-- does, then what report-outcomes does, in one step.
-- KEYS: those of take-permits, then those of report-outcomes
-- ARGV: those of take-permits, then what report-outcomes reads as JSON
-- reply: that of take-permits, then the view; nothing instead of it if the outcomes could not be
--        counted, which is no reason to lose the permits
-- expiry: as in both
local KEYS_OF_TAKE = 2
--- @include server-time
local outcomes = table.remove(ARGV)

local function take_permits()
  --- @include take-permits
end

local function report_outcomes(KEYS, ARGV)
  --- @include report-outcomes
end

local granted = take_permits()
local counted, view = pcall(
  report_outcomes,
  { unpack(KEYS, KEYS_OF_TAKE + 1) },
  { ARGV[1], outcomes }
)
return { granted, counted and view }
