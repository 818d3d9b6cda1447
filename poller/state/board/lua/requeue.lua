-- requeue: a person wants dead letters tried again. They go before routine polls, each at its instant.
--
-- KEYS[1] prefix            reads  spec, inflight, barred      writes  urgent:<queue>, due:<queue>, parked, held, returned
-- ARGV    now in ms, then pairs: target id, instant in ms (1 = at once, see claim.lua)
-- Returns for each id: due, inflight, gone, or barred: a person keeps it from being polled.
local p = KEYS[1]
local reply = {}
local function requeue(id, instant)
  local queue = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|%d+|(.+)$')
  if not queue then return 'gone' end
  if redis.call('ZSCORE', p .. 'inflight', id) then return 'inflight' end
  local bar = redis.call('HGET', p .. 'barred', id)
  if bar and tonumber(string.match(bar, '^(%d+)|') or 0) > tonumber(ARGV[1]) then return 'barred' end
  for _, set in ipairs({'parked', 'due:' .. queue}) do redis.call('ZREM', p .. set, id) end
  if redis.call('ZREM', p .. 'held', id) == 1 then redis.call('SADD', p .. 'returned', id) end
  redis.call('ZADD', p .. 'urgent:' .. queue, instant, id)
  return 'due'
end
for i = 2, #ARGV, 2 do reply[#reply + 1] = requeue(ARGV[i], ARGV[i + 1]) end
return reply
