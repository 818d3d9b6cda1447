-- demand: somebody wants targets polled now. They go before everything else; one in flight is already being polled.
--
-- KEYS[1] prefix            reads  spec, inflight      writes  urgent:<queue>, due:<queue>, parked, held, returned
-- ARGV    target ids
-- Returns {now, then for each id: due, inflight or gone}. A score below 1000 means `at once` to claim.lua.
local p = KEYS[1]
local t = redis.call('TIME')
local reply = {string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))}
for _, id in ipairs(ARGV) do
  local spec = redis.call('HGET', p .. 'spec', id)
  local queue = spec and string.match(spec, '^%d+|%d+|%d+|(.+)$')
  if not queue then
    reply[#reply + 1] = 'gone'
  elseif redis.call('ZSCORE', p .. 'inflight', id) then
    reply[#reply + 1] = 'inflight'
  else
    redis.call('ZREM', p .. 'parked', id)
    if redis.call('ZREM', p .. 'held', id) == 1 then redis.call('SADD', p .. 'returned', id) end
    redis.call('ZREM', p .. 'due:' .. queue, id)
    redis.call('ZADD', p .. 'urgent:' .. queue, 1, id)
    reply[#reply + 1] = 'due'
  end
end
return reply
