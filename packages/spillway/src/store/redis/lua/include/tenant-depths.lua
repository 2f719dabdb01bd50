-- Counts the waiting jobs of each tenant, by priority. The cost does not depend on the number of jobs. Needs
-- include/queue-state; in its JSON: sample, the number of jobs of a priority that are counted one by one.
-- If there are more: a tenant has one job at each tag from the tag that the queue has reached to the tenant's
-- last tag, which is stored; fewer, if some were cancelled. So the number of tags is an upper bound of the
-- tenant's jobs. If the bounds of all tenants add up to the number of jobs, each bound is exact. If they add up
-- to a few more, no bound is wrong by more than that. Otherwise, or if there are too many tenants, the result
-- is an estimate from jobs picked at random (the server picks the same places each time).
local MOST_TAGS = 2000
local MOST_TOO_MANY = 0.02
local depths, is_exact = {}, true

local function add_depth(tenant, priority, count)
  local own = depths[tenant] or { 0, 0, 0, 0 }
  own[priority + 1] = own[priority + 1] + count
  depths[tenant] = own
end

local last_tags
local function by_turns(priority, border, count)
  if border <= meta[REACHED + priority] then return nil end
  if not last_tags then
    local key = KEYS[BEFORE_QUEUE + TAGS]
    last_tags = redis.call('HLEN', key) <= MOST_TAGS and redis.call('HGETALL', key) or {}
  end
  local found, sum, begin = {}, 0, priority .. ':'
  for index = 1, #last_tags, 2 do
    local field = last_tags[index]
    if string.sub(field, 1, 2) == begin then
      local jobs = (tonumber(last_tags[index + 1]) or 0) - border + 1
      if jobs > 0 then found[string.sub(field, 3)], sum = jobs, sum + jobs end
    end
  end
  if sum < count or sum - count > count * MOST_TOO_MANY then return nil end
  is_exact = is_exact and sum == count
  return found
end

-- Of no tenant, if its record was lost or cannot be read.
local function add_job(id, priority, jobs)
  local job = id and record_of(id)
  if not job or job.unreadable then
    is_exact = false
    return
  end
  add_depth(job[TENANT], priority, jobs)
end

local function pick_some(priority, from, count)
  is_exact = false
  for _ = 1, settings().sample do
    local place = from + math.random(0, count - 1)
    local id = redis.call('ZRANGE', KEYS[BEFORE_QUEUE + WAITING_SET], place, place)[1]
    add_job(id, priority, count / settings().sample)
  end
end

local function count_tenants(priority, from, count)
  local sample = settings().sample
  local last = from + math.min(count, sample) - 1
  local read = redis.call('ZRANGE', KEYS[BEFORE_QUEUE + WAITING_SET], from, last, 'WITHSCORES')
  local ids, border = {}, count > sample and tonumber(read[#read]) or math.huge
  for index = 1, #read, 2 do
    if tonumber(read[index + 1]) < border then ids[#ids + 1] = read[index] end
  end
  local behind = count > sample and by_turns(priority, border - priority * SPAN, count - #ids) or {}
  if count > sample and not next(behind) then return pick_some(priority, from, count) end
  for tenant, jobs in pairs(behind) do add_depth(tenant, priority, jobs) end
  for _, id in ipairs(ids) do add_job(id, priority, 1) end
end

-- Those with the most; exact 0|1, how many others, then each: tenant, waiting in each of the four priorities.
local function top_tenants(most)
  local from = 0
  for priority = 0, PRIORITIES - 1 do
    local count = meta[LINED + priority]
    if count > 0 then count_tenants(priority, from, count) end
    from = from + count
  end
  local top, others = {}, 0
  for tenant, own in pairs(depths) do
    local sum, at = own[1] + own[2] + own[3] + own[4], #top + 1
    while at > 1 and (top[at - 1].sum < sum or (top[at - 1].sum == sum and tenant < top[at - 1].tenant)) do
      top[at], at = top[at - 1], at - 1
    end
    top[at] = { tenant = tenant, sum = sum, own = own }
    if #top > most then top[#top], others = nil, others + 1 end
  end
  local reply = { is_exact and 1 or 0, others }
  for _, each in ipairs(top) do
    reply[#reply + 1] = each.tenant
    for priority = 1, PRIORITIES do reply[#reply + 1] = math.floor(each.own[priority] + 0.5) end
  end
  return reply
end
