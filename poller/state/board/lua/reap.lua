-- reap: targets whose lease ran out (worker killed, message lost) are due again at once. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, inflight, run, spec      writes  inflight, run, edited, due:<queue>
-- ARGV    leader token ('' = no election), now in ms ('' = server clock), limit
-- Returns {'NOTLEADER'} or {now, then for each reaped target: id, token, plan, attempts}
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return {'NOTLEADER'} end
local now = ARGV[2]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local reply = {now}
local ids = redis.call('ZRANGEBYSCORE', p .. 'inflight', '-inf', now, 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do
  local run = redis.call('HGET', p .. 'run', id) or '||0|'
  local token, plan, attempts = string.match(run, '^([^|]*)|(%d*)|(%d+)|')
  local spec = redis.call('HGET', p .. 'spec', id)
  redis.call('ZREM', p .. 'inflight', id)
  redis.call('HDEL', p .. 'run', id)
  redis.call('HDEL', p .. 'edited', id)
  local queue = spec and string.match(spec, '^%d+|%d+|%d+|(.+)$')
  if queue then
    redis.call('ZADD', p .. 'due:' .. queue, now, id)
    reply[#reply + 1] = id
    reply[#reply + 1] = token or ''
    reply[#reply + 1] = plan or ''
    reply[#reply + 1] = attempts or '0'
  end
end
return reply
