-- Most round trips finish one job without keeping it, and reserve the next. Functions that only other round trips
-- need are created on demand, because creating them takes a quarter of the time of a usual request.
local made
local function unusual()
  if made then return made end
  --- @include queue-moves
  --- @include unusual-ends
  made = {
    forget_ended = forget_ended, bring_back = bring_back, end_job = end_job, finish = finish,
    repeated_reply = repeated_reply, wake_one = wake_one, park = park, first_score = first_score,
    forget_lost = forget_lost,
  }
  return made
end
