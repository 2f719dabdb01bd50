-- A pod says goodbye.
-- KEYS: the group's pods; what they say; what is wanted of them
-- ARGV: pod
-- reply: 1
-- expiry: as it is
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
