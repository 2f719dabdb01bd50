-- Books units that a pod used under an outage rule, while the store was unreachable: in the slice or window
-- in which they were used, if that still counts, and for buckets as debt. Resent under the same number, it
-- does nothing.
-- Twin of store/limits/book-spent.ts.
-- KEYS: lane, guard, the pod's last sequence number
-- ARGV: see include/lane-state; sequence number; spent as { limit (from 1), stamp, units }
-- reply: 1 applied, 0 known already
-- expiry: as in settle-permits
--- @include counting
--- @include lane-state
local last = redis.call('GET', KEYS[3])
if last and tonumber(last) >= input.sequence then return 0 end
redis.call('SET', KEYS[3], string.format('%.0f', input.sequence), 'PX', 600000)
for _, spent in ipairs(input.spent) do
  local spec, count, stamp, units = specs[spent[1]], counts[spent[1]], spent[2], spent[3]
  if is_bucket(spec) then
    overrun(spec, count, now, units)
  elseif spec[ALGORITHM] == FIXED then
    if stamp >= count[NEWEST_SLICE] then count[UNITS] = count[UNITS] + units end
  elseif stamp > count[NEWEST_SLICE] - count[SLICE_COUNT] then
    local slices = open_slices(count)
    local index = min(stamp, count[NEWEST_SLICE]) % count[SLICE_COUNT] + 1
    slices[index] = slices[index] + units
    count[UNITS] = count[UNITS] + units
    count[NEWEST_UNITS] = slices[count[NEWEST_SLICE] % count[SLICE_COUNT] + 1]
    count[PACKED_SLICES] = cmsgpack.pack(slices)
  end
end
keep()
return 1
