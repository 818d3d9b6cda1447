-- recount: bring the sums, and the list of targets that are not well, up to the records they are made of.
-- Takes about a second for a million targets.
--
-- KEYS[1] prefix            reads  status, spec      writes  counts, needs, unwell
-- Returns the number of wrong sums; a list of another length counts as one.
local function each_value(hash, visit)
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', p .. hash, cursor, 'COUNT', 1000)
    cursor = page[1]
    for i = 2, #page[2], 2 do visit(page[2][i], page[2][i - 1]) end
  until cursor == '0'
end

local counts, needs, wrong = {}, {}, 0
local listed = redis.call('ZCARD', p .. 'unwell')
redis.call('DEL', p .. 'unwell')
each_value('status', function(status, id)
  local mark = mark_of(status)
  if mark then
    counts[mark] = (counts[mark] or 0) + 1
    if mark ~= WELL then redis.call('ZADD', p .. 'unwell', last_good(status), id) end
  end
end)
if redis.call('ZCARD', p .. 'unwell') ~= listed then wrong = wrong + 1 end
each_value('spec', function(spec)
  local _, interval, _, queue = parse_spec(spec)
  if queue then needs[queue] = (needs[queue] or 0) + polls_needed(interval) end
end)

for hash, sums in pairs({counts = counts, needs = needs}) do
  local stored = redis.call('HGETALL', p .. hash)
  for i = 1, #stored, 2 do
    local field, value = stored[i], tonumber(stored[i + 1])
    if sums[field] == nil then sums[field] = 0 end
    if value == sums[field] then sums[field] = nil end
  end
  for field, value in pairs(sums) do
    wrong = wrong + 1
    redis.call('HSET', p .. hash, field, string.format('%d', value))
  end
end
return wrong
