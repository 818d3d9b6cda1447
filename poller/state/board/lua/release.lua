-- release: held targets wait for a poll again. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  held, released, due:<queue>, urgent:<queue>
-- ARGV    leader token ('' = no election), place (due|urgent), then pairs: id, instant in ms
-- Returns {'NOTLEADER'} or the number of released targets. Targets that are not held stay where they are.
if not leads(ARGV[1]) then return NOT_LEADER end
local place, moved = ARGV[2], 0
for i = 3, #ARGV, 2 do
  local id, instant = ARGV[i], ARGV[i + 1]
  if redis.call('ZREM', p .. 'held', id) == 1 then
    local queue = queue_of(id)
    if queue then
      redis.call('ZADD', p .. place .. ':' .. queue, instant, id)
      redis.call('SADD', p .. 'released', id)
    end
    moved = moved + 1
  end
end
return moved
