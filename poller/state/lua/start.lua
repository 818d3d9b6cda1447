-- start: a worker is about to poll; is each run still the one in flight, and not started yet?
--
-- KEYS[1] prefix            reads  run, spec, status, due:<queue>      writes  run, inflight, barred
-- ARGV    now in ms ('' = server clock), claim token, attempt (0 = first), call (random: makes a repeated call harmless),
--         lease margin in ms, then target ids
-- Returns {now, queue, targets of this queue that are overdue by more than two seconds,
--          then for each id: verdict, plan, version, status,
--          then the ids of those that a person had barred}; the verdict is ok, duplicate, stale or gone.
-- The lease is set anew: the target's own time limit plus the margin.
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local token, attempt, call, margin = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local ids = {unpack(ARGV, 6)}
local runs = redis.call('HMGET', p .. 'run', unpack(ids))
local specs = redis.call('HMGET', p .. 'spec', unpack(ids))
local statuses = redis.call('HMGET', p .. 'status', unpack(ids))
local reply, started, flight = {now, '', 0}, {}, {}
local gone = {}
for i, id in ipairs(ids) do
  local verdict, plan, version = 'stale', '', ''
  if runs[i] then
    local held, slot, attempts, by = string.match(runs[i], '^([^|]*)|(%d+)|(%d+)|(.*)$')
    plan = slot or ''
    if held ~= token then
      verdict = 'stale'
    elseif attempts ~= attempt and not (tonumber(attempts) == attempt + 1 and by == call) then
      verdict = 'duplicate'
    else
      local ver, timeout, queue = string.match(specs[i] or '', '^(%d+)|%d+|(%d+)|(.+)$')
      if not ver then
        verdict = 'gone'
        gone[#gone + 1] = id
      else
        verdict = 'ok'
        version = ver
        reply[2] = queue
        started[#started + 1] = id
        started[#started + 1] = string.format('%s|%s|%d|%s', token, slot, attempt + 1, call)
        flight[#flight + 1] = now + timeout + margin
        flight[#flight + 1] = id
      end
    end
  elseif not specs[i] then
    verdict = 'gone'
  end
  reply[#reply + 1] = verdict
  reply[#reply + 1] = plan
  reply[#reply + 1] = version
  reply[#reply + 1] = statuses[i] or ''
end
if #started > 0 then
  reply[3] = redis.call('ZCOUNT', p .. 'due:' .. reply[2], '-inf', now - 2000)
  redis.call('HSET', p .. 'run', unpack(started))
  redis.call('ZADD', p .. 'inflight', unpack(flight))
  if redis.call('EXISTS', p .. 'barred') == 1 then
    for i, bar in ipairs(redis.call('HMGET', p .. 'barred', unpack(ids))) do
      if bar then
        reply[#reply + 1] = ids[i]
        if tonumber(string.match(bar, '^(%d+)|') or 0) <= tonumber(now) then redis.call('HDEL', p .. 'barred', ids[i]) end
      end
    end
  end
end
if #gone > 0 then
  redis.call('HDEL', p .. 'run', unpack(gone))
  redis.call('ZREM', p .. 'inflight', unpack(gone))
end
return reply
