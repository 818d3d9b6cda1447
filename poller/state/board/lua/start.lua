-- start: a worker is about to poll; confirm that each run is still in flight under its token and not started yet.
--
-- KEYS[1] prefix            reads  run, spec, status, due:<queue>, rules, marks
--                           writes run, inflight, edited, opened, released
-- ARGV    now in ms ('' = server clock), claim token, attempt (0 = first), call (worker~nonce: makes a repeated call harmless),
--         lease margin in ms, then target ids
-- Returns {now, targets of the first one's queue that are overdue by more than two seconds,
--          the runs, the specs and the statuses, each in the order of the ids,
--          pairs of an id that must not be polled and the reason: duplicate, stale or gone,
--          the ids of targets whose poll an operator or a dark site postponed,
--          the version of the alert rules ('' = none), pairs of an id that has marks and its marks}
--
-- The new lease is the timeout of the target plus the margin.
-- The server has one thread and the workers are many: the workers parse the records.
local now, token, attempt, call, margin = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local ids = {unpack(ARGV, 6)}
local runs = redis.call('HMGET', p .. 'run', unpack(ids))
local specs = redis.call('HMGET', p .. 'spec', unpack(ids))
local statuses = redis.call('HMGET', p .. 'status', unpack(ids))
local head, tail = token .. '|', (attempt + 1) .. '|' .. call

-- Returns the run as it will be, or nil and the reason; and whether this very call started it before.
-- The first test serves nearly all runs: the first attempt of a run that was not started.
local function started(run)
  if not run or string.sub(run, 1, #head) ~= head then return nil, 'stale' end
  if attempt == 0 and string.sub(run, -3) == '|0|' then return string.sub(run, 1, -3) .. tail end
  local before, attempts, caller = string.match(run, '^([^|]*|[^|]*|)(%d+)|([^|]*)$')
  if not before then return nil, 'stale' end
  if attempts .. '|' .. caller == tail then return run, nil, true end
  if tonumber(attempts) == attempt then return before .. tail end
  return nil, 'duplicate'
end

local leases = {} -- by spec: the targets of a batch mostly share few of them
local function lease(spec)
  if leases[spec] == nil then
    local _, _, timeout = parse_spec(spec)
    leases[spec] = timeout and string.format('%d', now + timeout + margin) or false
  end
  return leases[spec]
end

local running, flight, polled, fresh, refused, gone, k = {}, {}, {}, {}, {}, {}, 0
for i, id in ipairs(ids) do
  local run, reason, repeated = started(runs[i])
  local lease_end = specs[i] and lease(specs[i])
  if run and lease_end then
    running[k + 1], running[k + 2] = id, run
    flight[k + 1], flight[k + 2] = lease_end, id
    polled[#polled + 1] = id
    if not repeated then fresh[#fresh + 1] = id end
    k = k + 2
  else
    if run then gone[#gone + 1] = id end
    refused[#refused + 1] = id
    refused[#refused + 1] = (run or not (runs[i] or specs[i])) and 'gone' or reason
  end
end

local overdue, postponed, marks = 0, {}, {}
if k > 0 then
  overdue = redis.call('ZCOUNT', p .. 'due:' .. (queue_in(specs[1]) or ''), '-inf', now - 2000)
  redis.call('HSET', p .. 'run', unpack(running))
  redis.call('ZADD', p .. 'inflight', unpack(flight))
  -- An earlier edit takes effect with this poll. A repeated call may be late and drops no edit.
  if #fresh > 0 and redis.call('EXISTS', p .. 'edited') == 1 then
    redis.call('HDEL', p .. 'edited', unpack(fresh))
  end
  if redis.call('EXISTS', p .. 'opened') == 1 then
    for i, record in ipairs(redis.call('HMGET', p .. 'opened', unpack(polled))) do
      if record then
        postponed[#postponed + 1] = polled[i]
        if opened_until(record) <= tonumber(now) then redis.call('HDEL', p .. 'opened', polled[i]) end
      end
    end
  end
  if redis.call('EXISTS', p .. 'released') == 1 then
    for i, released in ipairs(redis.call('SMISMEMBER', p .. 'released', unpack(polled))) do
      if released == 1 then postponed[#postponed + 1] = polled[i] end
    end
    redis.call('SREM', p .. 'released', unpack(polled))
  end
  if redis.call('EXISTS', p .. 'marks') == 1 then
    for i, text in ipairs(redis.call('HMGET', p .. 'marks', unpack(polled))) do
      if text then
        marks[#marks + 1] = polled[i]
        marks[#marks + 1] = text
      end
    end
  end
end
if #gone > 0 then end_runs(unpack(gone)) end
return {now, overdue, runs, specs, statuses, refused, postponed, redis.call('GET', p .. 'rules') or '', marks}
