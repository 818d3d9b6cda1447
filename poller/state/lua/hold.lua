-- hold: a worker has results and is about to write them; are the runs still its own? If so, the lease is prolonged.
--
-- KEYS[1] prefix            reads  run, spec      writes  inflight, run
-- ARGV    now in ms ('' = server clock), claim token, lease from now in ms, then target ids
-- Returns for each id: ok, stale (a worker that was paused beyond its lease writes nothing over its successor)
-- or gone (removed meanwhile: nobody wants its readings, and the run is over).
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local ids = {unpack(ARGV, 4)}
local specs = redis.call('HMGET', p .. 'spec', unpack(ids))
local reply, flight = {}, {}
for i, run in ipairs(redis.call('HMGET', p .. 'run', unpack(ids))) do
  reply[i] = 'stale'
  if run and string.match(run, '^([^|]*)|') == ARGV[2] then
    if specs[i] then
      reply[i] = 'ok'
      flight[#flight + 1] = now + ARGV[3]
      flight[#flight + 1] = ids[i]
    else
      reply[i] = 'gone'
      redis.call('HDEL', p .. 'run', ids[i])
      redis.call('ZREM', p .. 'inflight', ids[i])
    end
  elseif not run and not specs[i] then
    reply[i] = 'gone'
  end
end
if #flight > 0 then redis.call('ZADD', p .. 'inflight', 'GT', unpack(flight)) end
return reply
