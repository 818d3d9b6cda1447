-- withhold: targets of a site that went dark wait aside until it is back. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  due:<queue>, urgent:<queue>, held
-- ARGV    leader token ('' = no election), site number, then target ids
-- Returns 'NOTLEADER' or how many were moved. What is in flight or parked stays where it is; what a person asked for, too.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return 'NOTLEADER' end
local moved = 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local queue = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|%d+|(.+)$')
  if queue then
    local asked = redis.call('ZSCORE', p .. 'urgent:' .. queue, id)
    if not (asked and tonumber(asked) < 1000) then
      local waits = redis.call('ZREM', p .. 'due:' .. queue, id) + redis.call('ZREM', p .. 'urgent:' .. queue, id)
      if waits > 0 then
        redis.call('ZADD', p .. 'held', ARGV[2], id)
        moved = moved + 1
      end
    end
  end
end
return moved
