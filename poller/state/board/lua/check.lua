-- check: in how many places is each target? Read-only; each call is one consistent look.
--
-- KEYS[1] prefix            reads  queues, due:<queue>, urgent:<queue>, inflight, parked, held
-- ARGV    target ids
-- Returns for each id the number of places it is in
local p = KEYS[1]
local sets = {p .. 'inflight', p .. 'parked', p .. 'held'}
for _, queue in ipairs(redis.call('SMEMBERS', p .. 'queues')) do
  sets[#sets + 1] = p .. 'due:' .. queue
  sets[#sets + 1] = p .. 'urgent:' .. queue
end
local found = {}
for i = 1, #ARGV do found[i] = 0 end
for _, set in ipairs(sets) do
  for i, score in ipairs(redis.call('ZMSCORE', set, unpack(ARGV))) do
    if score then found[i] = found[i] + 1 end
  end
end
return found
