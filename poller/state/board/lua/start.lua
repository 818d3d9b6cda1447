-- start: a worker is about to poll; is each run still the one in flight, and not started yet?
--
-- KEYS[1] prefix            reads  run, spec, status, due:<queue>      writes  run, inflight, edited, barred, returned
-- ARGV    now in ms ('' = server clock), claim token, attempt (0 = first), call (random: makes a repeated call harmless),
--         lease margin in ms, then target ids
-- Returns {now, targets of the first one's queue that are overdue by more than two seconds,
--          the runs, the specs and the statuses, each in the order of the ids,
--          pairs of an id that must not be polled and why not: duplicate, stale or gone,
--          the ids of those that a person or their dark site kept from being polled until now}
-- The lease is set anew: the target's own time limit plus the margin.
--
-- The server is one thread for everybody and workers are many: what can be taken apart there is passed on as it is.
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local token, attempt, call, margin = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local ids = {unpack(ARGV, 6)}
local runs = redis.call('HMGET', p .. 'run', unpack(ids))
local specs = redis.call('HMGET', p .. 'spec', unpack(ids))
local statuses = redis.call('HMGET', p .. 'status', unpack(ids))
local head, mark = token .. '|', (attempt + 1) .. '|' .. call

-- The run as it will be, or nil and why not; and was it started by this very call before? Most were not at all.
local function started(run)
  if not run or string.sub(run, 1, #head) ~= head then return nil, 'stale' end
  if attempt == 0 and string.sub(run, -3) == '|0|' then return string.sub(run, 1, -3) .. mark end
  local before, attempts, by = string.match(run, '^([^|]*|[^|]*|)(%d+)|([^|]*)$')
  if not before then return nil, 'stale' end
  if attempts .. '|' .. by == mark then return run, nil, true end
  if tonumber(attempts) == attempt then return before .. mark end
  return nil, 'duplicate'
end

local leases = {} -- by spec: those of a batch are mostly the same
local function lease(spec)
  if leases[spec] == nil then
    local timeout = string.match(spec, '^%d+|%d+|(%d+)|.+$')
    leases[spec] = timeout and string.format('%d', now + timeout + margin) or false
  end
  return leases[spec]
end

local running, flight, polled, fresh, refused, gone, k = {}, {}, {}, {}, {}, {}, 0
for i, id in ipairs(ids) do
  local run, why, again = started(runs[i])
  local ends = specs[i] and lease(specs[i])
  if run and ends then
    running[k + 1], running[k + 2] = id, run
    flight[k + 1], flight[k + 2] = ends, id
    polled[#polled + 1] = id
    if not again then fresh[#fresh + 1] = id end
    k = k + 2
  else
    if run then gone[#gone + 1] = id end
    refused[#refused + 1] = id
    refused[#refused + 1] = (run or not (runs[i] or specs[i])) and 'gone' or why
  end
end
local overdue, kept = 0, {}
if k > 0 then
  local queue = string.match(specs[1] or '', '^%d+|%d+|%d+|(.+)$') or ''
  overdue = redis.call('ZCOUNT', p .. 'due:' .. queue, '-inf', now - 2000)
  redis.call('HSET', p .. 'run', unpack(running))
  redis.call('ZADD', p .. 'inflight', unpack(flight))
  -- What was edited before now takes effect with this poll; not if it is said twice, since that may come late.
  if #fresh > 0 and redis.call('EXISTS', p .. 'edited') == 1 then redis.call('HDEL', p .. 'edited', unpack(fresh)) end
  if redis.call('EXISTS', p .. 'barred') == 1 then
    for i, bar in ipairs(redis.call('HMGET', p .. 'barred', unpack(polled))) do
      if bar then
        kept[#kept + 1] = polled[i]
        if tonumber(string.match(bar, '^(%d+)|') or 0) <= tonumber(now) then redis.call('HDEL', p .. 'barred', polled[i]) end
      end
    end
  end
  if redis.call('EXISTS', p .. 'returned') == 1 then
    for i, was in ipairs(redis.call('SMISMEMBER', p .. 'returned', unpack(polled))) do
      if was == 1 then kept[#kept + 1] = polled[i] end
    end
    redis.call('SREM', p .. 'returned', unpack(polled))
  end
end
if #gone > 0 then
  redis.call('HDEL', p .. 'run', unpack(gone))
  redis.call('HDEL', p .. 'edited', unpack(gone))
  redis.call('ZREM', p .. 'inflight', unpack(gone))
end
return {now, overdue, runs, specs, statuses, refused, kept}
