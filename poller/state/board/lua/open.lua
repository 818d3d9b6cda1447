-- open: an operator opens breakers for a while. `claim` skips an opened target; a waiting one moves at once.
--
-- KEYS[1] prefix            reads  spec, inflight      writes  opened, due:<queue>, urgent:<queue>
-- ARGV    end in ms, record for `opened`, then target ids
-- Returns for each id: opened, inflight (opened after the poll that is in flight) or gone.
local until_ms, record = ARGV[1], ARGV[2]
local reply = {}

for i = 3, #ARGV do
  local id = ARGV[i]
  local queue = queue_of(id)
  if not queue then
    reply[#reply + 1] = 'gone'
  else
    redis.call('HSET', p .. 'opened', id, record)
    if stop_waiting(id, queue) then redis.call('ZADD', p .. 'due:' .. queue, until_ms, id) end
    reply[#reply + 1] = redis.call('ZSCORE', p .. 'inflight', id) and 'inflight' or 'opened'
  end
end
return reply
