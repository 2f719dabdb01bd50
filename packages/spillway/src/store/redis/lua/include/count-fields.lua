-- Specs and counts are arrays, which are packed and read faster than tables with names.
local ID, ALGORITHM, LIMIT, WINDOW, SLICES, BURST, COUNTED_IN, LEARN, DAY = 1, 2, 3, 4, 5, 6, 7, 8, 9
local NEWEST_SLICE, UNITS, SLICE_US, NEWEST_UNITS, SLICE_COUNT, PACKED_SLICES = 1, 2, 3, 4, 5, 6
local FREE_AT_US, BUCKET_LIMIT, COUNT_WINDOW, COUNT_VERSION, LOWS, LEARNED = 7, 8, 9, 10, 11, 12
-- Unlike in the twin, the slices stay packed inside the state, and the units of the newest slice are kept
-- beside them: most requests change no other slice, and need not unpack the rest. The low points of
-- a token bucket are { at us, debt us }; other counts have none. See include/learned-limit for the last field.
