-- bar: a person does not want targets polled for a while. `claim` minds it; here it takes effect at once.
--
-- KEYS[1] prefix            reads  spec, inflight      writes  barred, due:<queue>, urgent:<queue>
-- ARGV    end in ms, start in ms, name of the person, then target ids
-- Returns for each id: barred, inflight (barred after the poll that is under way) or gone.
local p = KEYS[1]
local reply = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local queue = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|%d+|(.+)$')
  if not queue then
    reply[#reply + 1] = 'gone'
  else
    redis.call('HSET', p .. 'barred', id, string.format('%s|%s|%s', ARGV[1], ARGV[2], ARGV[3]))
    local waits = redis.call('ZREM', p .. 'due:' .. queue, id) + redis.call('ZREM', p .. 'urgent:' .. queue, id)
    if waits > 0 then redis.call('ZADD', p .. 'due:' .. queue, ARGV[1], id) end
    reply[#reply + 1] = redis.call('ZSCORE', p .. 'inflight', id) and 'inflight' or 'barred'
  end
end
return reply
