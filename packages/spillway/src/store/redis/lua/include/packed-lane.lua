-- Packs a lane for its key, and unpacks it.
-- rest, after the head: { g, f, ids of the limits, their counts, waiting pods, next message us }
--- @include count-fields
--- @include lane-head
local NO_TAG = '                '

local function unpack_lane(packed)
  if not packed then return { t = 0, p = 0, g = 0, f = 0, counts = {}, w = { {}, 0 } } end
  local _, t, p, limit_count, at = struct.unpack(HEAD_FORM, packed)
  local rest = cmsgpack.unpack(string.sub(packed, at + limit_count * struct.size(LIMIT_FORM)))
  local ids, all, counts = rest[3], rest[4], {}
  for index = 1, limit_count do
    local count = all[index]
    count[NEWEST_SLICE], count[UNITS], count[SLICE_US], count[NEWEST_UNITS], _, at =
      struct.unpack(LIMIT_FORM, packed, at)
    counts[ids[index]] = count
  end
  -- A pod of an earlier release does not write the waiting pods.
  local waiting = { rest[5] or {}, rest[6] or 0 }
  return { t = t, p = p, g = rest[1], f = rest[2], counts = counts, w = waiting }
end

-- ids: the order of the counts; limits: by id, if known
local function pack_lane(lane, tag, ids, limits)
  local parts, counts = { struct.pack(HEAD_FORM, tag, lane.t, lane.p, #ids) }, {}
  for index, id in ipairs(ids) do
    local count = lane.counts[id]
    local limit = limits[id] or 0
    local newest, units, slice_us = count[NEWEST_SLICE], count[UNITS], count[SLICE_US]
    parts[1 + index] =
      struct.pack(LIMIT_FORM, newest, units, slice_us, count[NEWEST_UNITS], limit)
    counts[index] = count
  end
  return table.concat(parts) .. cmsgpack.pack({ lane.g, lane.f, ids, counts, lane.w[1], lane.w[2] })
end
