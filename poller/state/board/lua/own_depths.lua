-- own_depths: the queues of single workers, and the batches that wait in each.
--
-- KEYS[1] prefix            reads  own, Celery's lists
-- ARGV    mark of a list of routine batches
-- Returns {queue, batches, queue, batches ...}
--
-- One call instead of two commands for each queue: a cluster of many workers has hundreds of these queues. A name
-- that another program added is passed on with whatever its list holds.
local mark = ARGV[1]
local reply = {}
for _, queue in ipairs(redis.call('SMEMBERS', p .. 'own')) do
  local urgent, routine = redis.pcall('LLEN', queue), redis.pcall('LLEN', queue .. mark)
  if type(urgent) == 'number' and type(routine) == 'number' then
    reply[#reply + 1] = queue
    reply[#reply + 1] = urgent + routine
  end
end
return reply
