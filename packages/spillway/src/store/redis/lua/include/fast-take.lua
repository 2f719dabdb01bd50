-- The fast path, for nearly every request of a busy lane: the same limits and the same slice as the last
-- request, no changed limit, no override, no pause, no waiting pod, and everything fits. Then all calls
-- are granted, and only the head of the lane changes. The expiry stays: units booked in a slice leave
-- with the slice. Costs are never negative: if their sum fits, so does every prefix of the calls.
--- @include server-time
--- @include lane-head

-- sums: the cost of all calls together, by limit. Returns the short reply of take-permits, or nil if the
-- request needs the full transition; then nothing has been changed.
local function usual_take(tag, call_count, sums)
  if not stored_lane or stored_guard or call_count == 0 then return nil end
  local stored_tag, t, p, limit_count, at = struct.unpack(HEAD_FORM, stored_lane)
  local server = server_us()
  local now = math.max(server, t)
  if stored_tag ~= tag or now - server > SET_BACK_US or p > now then return nil end

  local head = struct.pack(HEAD_FORM, tag, now, p, limit_count)
  local reply = { call_count, now }
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
