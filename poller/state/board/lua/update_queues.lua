-- update_queues: bring the list of queues up to the needs of the targets, and wake the workers. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, needs, own, due:<queue>, urgent:<queue>, Celery's lists
--                           writes queues, needs      publishes on  domains
-- ARGV    leader token ('' = no election), mark of a list of routine batches
-- Returns {'NOTLEADER'} or {{queues that came}, {queues that went}}
--
-- A queue that a target needs is in the list. `needs` counts targets in flight, parked and held, too (see place.lua).
-- Another queue leaves when it is empty: no target waits for it, and no message either, since a worker that
-- leaves a queue leaves its messages behind.
if not leads(ARGV[1]) then return NOT_LEADER end
local mark = ARGV[2]

local function is_empty(queue)
  local lists = {queue, queue .. mark}
  for _, name in ipairs(redis.call('SMEMBERS', p .. 'own')) do
    if string.sub(name, 1, #queue + 1) == queue .. '~' then -- see affinity.py
      lists[#lists + 1] = name
      lists[#lists + 1] = name .. mark
    end
  end
  return redis.call('EXISTS', p .. 'due:' .. queue, p .. 'urgent:' .. queue, unpack(lists)) == 0
end

local came, went = {}, {}
local needs = redis.call('HGETALL', p .. 'needs')
for i = 1, #needs, 2 do
  local queue, need = needs[i], tonumber(needs[i + 1])
  if need and need > 0 then
    if redis.call('SADD', p .. 'queues', queue) == 1 then came[#came + 1] = queue end
  elseif need == 0 and is_empty(queue) then
    redis.call('SREM', p .. 'queues', queue)
    redis.call('HDEL', p .. 'needs', queue)
    went[#went + 1] = queue
  end
end
if #came + #went > 0 then redis.call('PUBLISH', p .. 'domains', 'changed') end
return {came, went}
