-- hold: a worker has results and is about to write them; are the runs still its own? If so, the lease is prolonged.
--
-- KEYS[1] prefix            reads  run      writes  inflight
-- ARGV    now in ms ('' = server clock), claim token, lease from now in ms, then target ids
-- Returns 1 or 0 for each id. A worker that was paused beyond its lease thus writes nothing over its successor.
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local ids = {unpack(ARGV, 4)}
local reply, flight = {}, {}
for i, run in ipairs(redis.call('HMGET', p .. 'run', unpack(ids))) do
  reply[i] = 0
  if run and string.match(run, '^([^|]*)|') == ARGV[2] then
    reply[i] = 1
    flight[#flight + 1] = now + ARGV[3]
    flight[#flight + 1] = ids[i]
  end
end
if #flight > 0 then redis.call('ZADD', p .. 'inflight', 'GT', unpack(flight)) end
return reply
