-- Removes a pod that leaves its group.
-- KEYS: the group's pods; their snapshots; commands for them
-- ARGV: pod
-- reply: 1
-- expiry: unchanged
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
