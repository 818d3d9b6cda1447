-- reset: an operator closes breakers. A target waits for its next slot; one in flight keeps its run, whose result wins.
--
-- KEYS[1] prefix            reads  spec, inflight, held
--                           writes status, counts, unwell, totals, opened, due:<queue>, urgent:<queue>, parked
-- ARGV    n times: id, expected status, new status, slot in ms
-- Returns for each id: due, inflight, held (its site is dark), gone, or changed: its status is not the expected one.
local function move_to_slot(id, queue, slot)
  if redis.call('ZSCORE', p .. 'inflight', id) then return 'inflight' end
  if redis.call('ZSCORE', p .. 'held', id) then return 'held' end
  if not is_demanded(redis.call('ZSCORE', p .. 'urgent:' .. queue, id)) then
    redis.call('ZREM', p .. 'urgent:' .. queue, id)
    redis.call('ZREM', p .. 'parked', id)
    redis.call('ZADD', p .. 'due:' .. queue, slot, id)
  end
  return 'due'
end

local function reset(id, old, new, slot)
  local queue = queue_of(id)
  if not queue then return 'gone' end
  if redis.call('HGET', p .. 'status', id) ~= old then return 'changed' end
  redis.call('HSET', p .. 'status', id, new)
  index_status(id, new)
  if mark_of(old) ~= mark_of(new) then
    redis.call('HINCRBY', p .. 'counts', mark_of(old), -1)
    redis.call('HINCRBY', p .. 'counts', mark_of(new), 1)
    if string.find(mark_of(old), 'B') then redis.call('HINCRBY', p .. 'totals', 'breaker_closed', 1) end
  end
  redis.call('HDEL', p .. 'opened', id)
  return move_to_slot(id, queue, slot)
end

local reply = {}
for i = 1, #ARGV, 4 do reply[#reply + 1] = reset(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
return reply
