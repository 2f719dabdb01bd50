-- Time is the server's, in microseconds. ARGV[1] replaces it in tests; it is empty in use.
-- A clock that is behind by less than this is waited for; by more, it was set.
local SET_BACK_US = 5000000

local function server_us()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
