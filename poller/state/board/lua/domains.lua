-- domains: the set of queues is made to agree with what the targets need, and the workers are told. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, needs, own, due:<queue>, urgent:<queue>, Celery's lists
--                           writes queues, needs      says on  domains
-- ARGV    leader token ('' = no election), mark of a list of routine batches
-- Returns {'NOTLEADER'} or {{queues that came}, {queues that went}}
--
-- A queue that some target needs is there, whatever became of the set. A queue that none needs goes when nothing waits in
-- it: no target on the board, and no message, since a worker that leaves a queue leaves its messages, too. (What is needed
-- counts targets in flight, parked and held as well: see place.lua.)
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return {'NOTLEADER'} end
local function waits(queue)
  local lists = {queue, queue .. ARGV[2]}
  for _, name in ipairs(redis.call('SMEMBERS', p .. 'own')) do
    if string.sub(name, 1, #queue + 1) == queue .. '~' then -- see affinity.py
      lists[#lists + 1] = name
      lists[#lists + 1] = name .. ARGV[2]
    end
  end
  return redis.call('EXISTS', p .. 'due:' .. queue, p .. 'urgent:' .. queue, unpack(lists)) > 0
end
local came, went = {}, {}
local needs = redis.call('HGETALL', p .. 'needs')
for i = 1, #needs, 2 do
  local queue, need = needs[i], tonumber(needs[i + 1])
  if need and need > 0 then
    if redis.call('SADD', p .. 'queues', queue) == 1 then came[#came + 1] = queue end
  elseif need == 0 and not waits(queue) then
    redis.call('SREM', p .. 'queues', queue)
    redis.call('HDEL', p .. 'needs', queue)
    went[#went + 1] = queue
  end
end
if #came + #went > 0 then redis.call('PUBLISH', p .. 'domains', 'changed') end
return {came, went}
