-- check: in how many places is each target? Read-only; each call is one consistent look.
--
-- KEYS[1] prefix            reads  queues, due:<queue>, inflight, parked, spec
-- ARGV    target ids
-- Returns for each id the number of places it is in, or -1 if it is not on the board at all (no spec, no place).
local p = KEYS[1]
local sets = {p .. 'inflight', p .. 'parked'}
for _, queue in ipairs(redis.call('SMEMBERS', p .. 'queues')) do sets[#sets + 1] = p .. 'due:' .. queue end
local found = {}
for i = 1, #ARGV do found[i] = 0 end
for _, set in ipairs(sets) do
  for i, score in ipairs(redis.call('ZMSCORE', set, unpack(ARGV))) do
    if score then found[i] = found[i] + 1 end
  end
end
for i, spec in ipairs(redis.call('HMGET', p .. 'spec', unpack(ARGV))) do
  if not spec and found[i] == 0 then found[i] = -1 end
end
return found
