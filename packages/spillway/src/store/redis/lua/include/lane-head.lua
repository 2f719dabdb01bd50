-- A lane is kept as a head of fixed width, which a usual trip changes in place, and a packed rest
-- (see include/packed-lane).
-- head: tag, t, p, number of limits
-- then for each limit: N, S, W and C of its count, and the limit
-- The tag is a digest of limits, as pods describe them. It is there while the head begins with just
-- these, each a sliding window of this lane and counted in just this window; else it is blank.
local HEAD_FORM, LIMIT_FORM = '<c16ddd', '<ddddd'

local stored = redis.call('MGET', KEYS[1], KEYS[2])
local stored_lane, stored_guard = stored[1], stored[2]
