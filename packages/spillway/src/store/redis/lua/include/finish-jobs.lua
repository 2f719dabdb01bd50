-- Ends jobs, for every script that does so. With include/unusual-ends the twin of finishNow in store/queue/finish-jobs.ts.
-- BREAKER_AT: index of the breaker in KEYS; it is only read
-- settings: has_breaker; end_dead (us that those are kept that die of it); uncounted (turns of one job that may
--       end without counting as an attempt)
-- ARGV[BEFORE_ENDS]: us that results are kept; then for each end: the name of its lease; how it ended:
--       empty if it is done, else as JSON { kind (1 failed, 2 dead, 3 released, 4 returned), delay us, generation,
--       probe 0|1 }; its text
local STALE_REPLY, DONE_REPLY, AGAIN_REPLY, DEAD_REPLY, CANCELLED_REPLY = 0, 1, 2, 3, 4
--- @include unusual-moves

local function finish_all()
  if meta[FIRST + ENDS] <= queue_now then unusual().forget_ended(2 * (#ARGV - BEFORE_ENDS) / 3) end
  local result_us = tonumber(ARGV[BEFORE_ENDS])
  local reply = {}
  for at = BEFORE_ENDS + 1, #ARGV, 3 do
    local name, how, text = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    local id, turn = string.sub(name, 1, ID_LENGTH), string.sub(name, ID_LENGTH + 1)
    local ended
    if remove(LEASES, name) == 0 then
      ended = unusual().repeated_reply(id, turn)
    elseif how == '' and result_us == 0 and turn == ':1' and meta[APART] == 0 then
      redis.call('HDEL', KEYS[BEFORE_QUEUE + JOBS], id)
      ended = DONE_REPLY
    else
      ended = unusual().finish(id, turn, how, text, result_us)
      if ended == AGAIN_REPLY and meta[BLOCKED] <= queue_now then unusual().wake_one() end
    end
    reply[#reply + 1] = ended
  end
  return reply
end
