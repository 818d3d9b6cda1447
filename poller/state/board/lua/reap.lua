-- reap: targets whose lease ran out (worker killed, message lost) are due at once. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, inflight, run, spec      writes  inflight, run, edited, due:<queue>
-- ARGV    leader token ('' = no election), now in ms ('' = server clock), limit,
--         largest difference of now from the server's clock ('' = any): beyond it nothing is reaped
-- Returns {'NOTLEADER'} or {now, then for each reaped target: id, token, plan, attempts}
if not leads(ARGV[1]) then return NOT_LEADER end
local now = clock(ARGV[2])
local reply = {now}
if was_set(now, ARGV[4]) then return reply end
local ids = redis.call('ZRANGEBYSCORE', p .. 'inflight', '-inf', now, 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local run = redis.call('HGET', p .. 'run', id) or ''
  local token, plan, attempts = string.match(run, '^([^|]*)|(%d*)|(%d+)|')
  local queue = queue_of(id)
  end_runs(id)
  if queue then
    redis.call('ZADD', p .. 'due:' .. queue, now, id)
    reply[#reply + 1] = id
    reply[#reply + 1] = token or ''
    reply[#reply + 1] = plan or ''
    reply[#reply + 1] = attempts or '0'
  end
end
return reply
