-- release: targets that were held aside wait for a poll again. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  held, returned, due:<queue>, urgent:<queue>
-- ARGV    leader token ('' = no election), place (due|urgent), then pairs: id, instant in ms
-- Returns 'NOTLEADER' or how many were moved; what is not held is let be, and what the board does not know is forgotten.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return 'NOTLEADER' end
local moved = 0
for i = 3, #ARGV, 2 do
  local id = ARGV[i]
  if redis.call('ZREM', p .. 'held', id) == 1 then
    local queue = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|%d+|(.+)$')
    if queue then
      redis.call('ZADD', p .. ARGV[2] .. ':' .. queue, ARGV[i + 1], id)
      redis.call('SADD', p .. 'returned', id)
    end
    moved = moved + 1
  end
end
return moved
