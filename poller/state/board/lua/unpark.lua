-- unpark: dead letters whose slow retry is due wait for a poll again. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  parked, due:<queue>
-- ARGV    leader token ('' = no election), now in ms, limit,
--         largest difference of now from the server's clock ('' = any): beyond it nothing moves
-- Returns {'NOTLEADER'} or the number of targets that left `parked`. A target without a spec leaves the board.
if not leads(ARGV[1]) then return NOT_LEADER end
local now = ARGV[2]
if was_set(now, ARGV[4]) then return 0 end
local ids = redis.call('ZRANGEBYSCORE', p .. 'parked', '-inf', now, 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local queue = queue_of(id)
  redis.call('ZREM', p .. 'parked', id)
  if queue then redis.call('ZADD', p .. 'due:' .. queue, now, id) end
end
return #ids
