-- recount: make the sums agree with what they are sums of. Takes about a second for a million targets.
--
-- KEYS[1] prefix            reads  status, spec      writes  counts, needs
-- Returns how many sums were wrong.
local p = KEYS[1]
local function each(hash, visit)
  local cursor = '0'
  repeat
    local answer = redis.call('HSCAN', p .. hash, cursor, 'COUNT', 1000)
    cursor = answer[1]
    for i = 1, #answer[2], 2 do visit(answer[2][i + 1]) end
  until cursor == '0'
end
local counts, needs, wrong = {}, {}, 0
each('status', function(text)
  local mark = string.match(text, '^%a+')
  if mark then counts[mark] = (counts[mark] or 0) + 1 end
end)
each('spec', function(spec)
  local interval, queue = string.match(spec, '^%d+|(%d+)|%d+|(.+)$')
  if queue then needs[queue] = (needs[queue] or 0) + math.max(1, math.floor(1e9 / interval)) end
end)
for hash, sums in pairs({counts = counts, needs = needs}) do
  local old = redis.call('HGETALL', p .. hash)
  for i = 1, #old, 2 do
    if sums[old[i]] == nil then sums[old[i]] = 0 end
    if tonumber(old[i + 1]) == sums[old[i]] then sums[old[i]] = nil end
  end
  for field, value in pairs(sums) do
    wrong = wrong + 1
    redis.call('HSET', p .. hash, field, string.format('%d', value))
  end
end
return wrong
