-- check: count the places of each target. Read-only; each call reads one consistent state.
--
-- KEYS[1] prefix            reads  queues, due:<queue>, urgent:<queue>, inflight, parked, held
-- ARGV    target ids
-- Returns for each id the number of places it is in.
local places = {p .. 'inflight', p .. 'parked', p .. 'held'}
for _, queue in ipairs(redis.call('SMEMBERS', p .. 'queues')) do
  places[#places + 1] = p .. 'due:' .. queue
  places[#places + 1] = p .. 'urgent:' .. queue
end

local counts = {}
for i = 1, #ARGV do counts[i] = 0 end
for _, place in ipairs(places) do
  for i, score in ipairs(redis.call('ZMSCORE', place, unpack(ARGV))) do
    if score then counts[i] = counts[i] + 1 end
  end
end
return counts
