-- reset: a person closes breakers. A target waits for its next slot; one in flight keeps its run, and what that finds wins.
--
-- KEYS[1] prefix            reads  spec, inflight, held
--                           writes status, counts, totals, barred, due:<queue>, urgent:<queue>, parked
-- ARGV    n times: id, status it is believed to have, status it gets, slot in ms
-- Returns for each id: due, inflight, held (its site is dark), gone, or changed: its status is another one by now.
local p = KEYS[1]
local reply = {}
local function mark(status) return string.match(status, '^%a+') end
local function settle(id, queue, slot)
  if redis.call('ZSCORE', p .. 'inflight', id) then return 'inflight' end
  if redis.call('ZSCORE', p .. 'held', id) then return 'held' end
  local asked = redis.call('ZSCORE', p .. 'urgent:' .. queue, id)
  if not (asked and tonumber(asked) < 1000) then
    redis.call('ZREM', p .. 'urgent:' .. queue, id)
    redis.call('ZREM', p .. 'parked', id)
    redis.call('ZADD', p .. 'due:' .. queue, slot, id)
  end
  return 'due'
end
local function reset(id, old, new, slot)
  local queue = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|%d+|(.+)$')
  if not queue then return 'gone' end
  if redis.call('HGET', p .. 'status', id) ~= old then return 'changed' end
  redis.call('HSET', p .. 'status', id, new)
  if mark(old) ~= mark(new) then
    redis.call('HINCRBY', p .. 'counts', mark(old), -1)
    redis.call('HINCRBY', p .. 'counts', mark(new), 1)
    redis.call('HINCRBY', p .. 'totals', 'breaker_closed', 1)
  end
  redis.call('HDEL', p .. 'barred', id)
  return settle(id, queue, slot)
end
for i = 1, #ARGV, 4 do reply[#reply + 1] = reset(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
return reply
