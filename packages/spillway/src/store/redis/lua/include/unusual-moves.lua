-- Most trips bring a job that is done, of which nothing is kept, and take the next. What only others need is
-- made for them: making it takes a quarter of the time of a usual request.
local made
local function unusual()
  if made then return made end
  --- @include queue-moves
  --- @include unusual-ends
  made = {
    forget_ended = forget_ended, bring_back = bring_back, end_job = end_job, finish = finish,
    told_before = told_before, wake_one = wake_one, park = park, first_score = first_score,
    forget_lost = forget_lost,
  }
  return made
end
