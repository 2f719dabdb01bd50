-- Nearly every trip of a busy lane: it comes with the limits of the last one, none changed or
-- overridden, in the slice of the last one, nobody is paused, and everything fits. Then all of it
-- is granted, and nothing but the head of the lane changes. Its expiry need not: what is booked in
-- a slice leaves with the slice.
-- Costs are never negative, so if their sum fits, so does every beginning of the line, and no
-- single cost is too large to be granted as it is.
--- @include server-time
--- @include lane-head

-- sums: by limit, what all wishes cost together. Answers with take-permits' short reply, or with
-- nothing: an unusual trip, for which nothing has been done yet.
local function usual_take(tag, wish_count, sums)
  if not stored_lane or stored_guard or wish_count == 0 then return nil end
  local stored_tag, t, p, limit_count, at = struct.unpack(HEAD_FORM, stored_lane)
  local server = server_us()
  local now = math.max(server, t)
  if stored_tag ~= tag or now - server > SET_BACK_US or p > now then return nil end

  local head = struct.pack(HEAD_FORM, tag, now, p, limit_count)
  local reply = { wish_count, now }
  for index = 1, #sums do
    local newest, counted, slice_us, in_newest, limit
    newest, counted, slice_us, in_newest, limit, at = struct.unpack(LIMIT_FORM, stored_lane, at)
    counted, in_newest = counted + sums[index], in_newest + sums[index]
    if math.floor(now / slice_us) > newest or counted > limit then return nil end
    head = head .. struct.pack(LIMIT_FORM, newest, counted, slice_us, in_newest, limit)
    reply[2 + index] = newest
  end
  redis.call('SETRANGE', KEYS[1], '0', head)
  return reply
end
