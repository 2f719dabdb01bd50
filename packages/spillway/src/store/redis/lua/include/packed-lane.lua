-- From a lane to what is kept of it, and back.
-- rest, after the head: { g, f, ids of the limits, their counts }
--- @include count-fields
--- @include lane-head
local NO_TAG = '                '

local function unpack_lane(packed)
  if not packed then return { t = 0, p = 0, g = 0, f = 0, counts = {} } end
  local _, t, p, limit_count, at = struct.unpack(HEAD_FORM, packed)
  local rest = cmsgpack.unpack(string.sub(packed, at + limit_count * struct.size(LIMIT_FORM)))
  local ids, all, counts = rest[3], rest[4], {}
  for index = 1, limit_count do
    local count = all[index]
    count[N], count[S], count[W], count[C], _, at = struct.unpack(LIMIT_FORM, packed, at)
    counts[ids[index]] = count
  end
  return { t = t, p = p, g = rest[1], f = rest[2], counts = counts }
end

-- ids: in which order; limits: by id, where it is known
local function pack_lane(lane, tag, ids, limits)
  local parts, counts = { struct.pack(HEAD_FORM, tag, lane.t, lane.p, #ids) }, {}
  for index, id in ipairs(ids) do
    local count = lane.counts[id]
    local limit = limits[id] or 0
    parts[1 + index] = struct.pack(LIMIT_FORM, count[N], count[S], count[W], count[C], limit)
    counts[index] = count
  end
  return table.concat(parts) .. cmsgpack.pack({ lane.g, lane.f, ids, counts })
end
