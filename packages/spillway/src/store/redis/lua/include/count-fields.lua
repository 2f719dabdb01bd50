-- Specs and counts are arrays, which are packed and read faster than tables with names.
local ID, ALGORITHM, LIMIT, WINDOW, SLICES, BURST, VENDOR = 1, 2, 3, 4, 5, 6, 7
local N, S, W, C, K, B, F, R, U, V = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
-- Unlike in the twin, the slices (B, K of them) stay packed inside the state, and the newest one
-- (C) is kept beside them: most trips touch no other, and need not unpack the rest.
