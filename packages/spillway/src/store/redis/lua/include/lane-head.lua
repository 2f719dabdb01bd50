-- A lane is stored as a head of fixed width, which the fast path changes in place, and a packed rest (see
-- include/packed-lane).
-- head: tag, t, p, number of limits
-- then for each limit: N, S, W and C of its count, and the limit
-- The tag is a digest of the limits as pods describe them. It is set while the head begins with exactly
-- these limits, each a sliding window of this lane counted in this window, and no pod waits; else blank.
local HEAD_FORM, LIMIT_FORM = '<c16ddd', '<ddddd'

local stored = redis.call('MGET', KEYS[1], KEYS[2])
local stored_lane, stored_guard = stored[1], stored[2]
