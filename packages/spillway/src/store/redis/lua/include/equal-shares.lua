-- Divides the free units of a limit between the requesting pod and waiting pods. All sums are parts of a limit.
-- Twin of store/limits/equal-shares.ts. A claim is { got, most }: the units granted to the pod so far, and the most
-- it claims of each limit, or false for its equal share.
local CLAIM_GOT, CLAIM_MOST = 1, 2

-- Units that the others may claim before a pod is granted `level` in total.
local function claimed_before(claims, limit, level)
  local sum = 0
  for _, claim in ipairs(claims) do
    local less = max(0, level - claim[CLAIM_GOT])
    sum = sum + (claim[CLAIM_MOST] and min(less, claim[CLAIM_MOST][limit]) or less)
  end
  return sum
end

-- The part of a limit that a pod may get. Pods that were granted less come first, until they have as much as this one
-- or all that they claim. After that all get equal parts.
local function share_of(claims, limit, own_got, free)
  local left = free - claimed_before(claims, limit, own_got)
  if left <= 0 then return 0 end
  -- The sums at which another pod begins (1) or stops (-1) to share with this one.
  local changes = {}
  for _, claim in ipairs(claims) do
    local ahead, most = claim[CLAIM_GOT] - own_got, claim[CLAIM_MOST]
    local begins = max(0, ahead)
    if not most or ahead + most[limit] > begins then
      changes[#changes + 1] = { begins, 1 }
      if most then changes[#changes + 1] = { ahead + most[limit], -1 } end
    end
  end
  table.sort(changes, function(one, other) return one[1] < other[1] end)
  local share, sharing = 0, 1
  for _, change in ipairs(changes) do
    local step = (change[1] - share) * sharing
    if step > left then break end
    left, share, sharing = left - step, change[1], sharing + change[2]
  end
  return share + floor(left / sharing)
end
