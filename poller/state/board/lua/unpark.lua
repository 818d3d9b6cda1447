-- unpark: dead letters whose slow retry is due wait for a poll again. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  parked, due:<queue>
-- ARGV    leader token ('' = no election), now in ms, limit
-- Returns 'NOTLEADER' or how many came back. One that the inventory does not know any more is forgotten.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return 'NOTLEADER' end
local ids = redis.call('ZRANGEBYSCORE', p .. 'parked', '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local queue = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|%d+|(.+)$')
  redis.call('ZREM', p .. 'parked', id)
  if queue then redis.call('ZADD', p .. 'due:' .. queue, ARGV[2], id) end
end
return #ids
