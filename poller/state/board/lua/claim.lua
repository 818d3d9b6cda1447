-- claim: move due targets in flight, in one step. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, urgent:<queue>, due:<queue>, opened, Celery's lists
--                           writes urgent:<queue>, due:<queue>, inflight, run, outbox, board
-- ARGV    leader token ('' = no election), now in ms ('' = server clock), lease in ms,
--         token of the last published claim ('' = unknown), token of this claim,
--         maximum number of targets, mark of a list of routine batches,
--         then triples: queue, batches that may wait in each of its two lists, targets in each batch
-- Returns {'NOTLEADER'} or {now, token, repeated (0|1), then triples: queue, urgent (1|0), {ids}}
--
-- Urgent targets of all queues go before routine polls; within each, the oldest first.
-- A target that was due before a pause of all claims is planned for the end of the pause.
-- A target that an operator opened is due again when the opening ends, unless an operator demands a poll.
-- The claim is written to the outbox in the same step. If the outbox holds another claim than the last
-- published one, that claim is returned again (repeated = 1): a lost reply, a kill or a SIGTERM between
-- claim and publication strands no target. `start` refuses duplicates of a batch that was published twice.
if not leads(ARGV[1]) then return NOT_LEADER end
local now, published, token, mark = clock(ARGV[2]), ARGV[4], ARGV[5], ARGV[7]

-- After a pause in which no leader claimed (nothing ran, or no worker did), lateness counts from its end: our own
-- downtime is no fault of the plan. catch_up.py, which spreads the overdue targets, calls the same time a pause.
local PAUSE_MS = 15000
local function resumed_at()
  local record = redis.call('HMGET', p .. 'board', 'clock', 'resumed')
  local last, resumed = tonumber(record[1] or now) or 0, tonumber(record[2] or 0) or 0
  if now - last > PAUSE_MS then
    redis.call('HSET', p .. 'board', 'resumed', now)
    return tonumber(now)
  end
  return resumed <= tonumber(now) and resumed or 0 -- else the clock was set back
end
local resumed = resumed_at()
redis.call('HSET', p .. 'board', 'clock', now)

-- The claim in the outbox, or nil if the text is damaged: the leases then bring its targets back.
local function read_outbox(text)
  local decoded, claim = pcall(cjson.decode, text)
  if not decoded or type(claim) ~= 'table' or #claim % 3 ~= 0 then return nil end
  if type(claim[2]) ~= 'string' or claim[2] == '' then return nil end
  for i = 4, #claim, 3 do
    local queue, urgent, ids = claim[i], claim[i + 1], claim[i + 2]
    if type(queue) ~= 'string' or type(urgent) ~= 'number' or type(ids) ~= 'table' then return nil end
    for _, id in ipairs(ids) do
      if type(id) ~= 'string' or id == '' or string.find(id, '%D') then return nil end
    end
  end
  return claim
end

local outbox = redis.call('GET', p .. 'outbox')
if outbox then
  local claim = read_outbox(outbox)
  if claim and claim[2] ~= published then
    claim[1] = now
    claim[3] = 1
    return claim
  end
  redis.call('DEL', p .. 'outbox')
end

local lease = string.format('%d', now + ARGV[3])
local reply = {now, '', 0}
local remaining = tonumber(ARGV[6])

-- Moves rows (id, score) in flight and appends their ids. A member that is no target id is dropped.
-- The rows are the first ones of their set: removal by rank costs the server far less than by name.
local function fly(set, rows, ids)
  for from = 1, #rows, 2000 do
    local flight, runs, k = {}, {}, 0
    for j = from, math.min(from + 1999, #rows), 2 do
      local id, plan = rows[j], tonumber(rows[j + 1])
      if id ~= '' and not string.find(id, '%D') then
        if plan < 1000 then plan = tonumber(now) end -- on demand, see `is_demanded`
        if plan < resumed then plan = resumed end
        ids[#ids + 1] = id
        flight[k + 1], flight[k + 2] = lease, id
        runs[k + 1], runs[k + 2] = id, string.format('%s|%d|0|', token, plan)
        k = k + 2
      end
    end
    if k > 0 then
      redis.call('ZADD', p .. 'inflight', unpack(flight))
      redis.call('HSET', p .. 'run', unpack(runs))
    end
  end
  redis.call('ZREMRANGEBYRANK', set, 0, #rows / 2 - 1)
end

-- The rows without opened targets, which move to the end of their opening.
local function without_opened(set, queue, rows)
  local passed = {}
  for from = 1, #rows, 2000 do
    local chunk = {}
    for j = from, math.min(from + 1999, #rows), 2 do chunk[#chunk + 1] = rows[j] end
    for k, record in ipairs(redis.call('HMGET', p .. 'opened', unpack(chunk))) do
      local id, score = chunk[k], rows[from + 2 * k - 1]
      local until_ms = opened_until(record)
      if until_ms > tonumber(now) and not is_demanded(score) then
        redis.call('ZREM', set, id)
        redis.call('ZADD', p .. 'due:' .. queue, until_ms, id)
      else
        passed[#passed + 1] = id
        passed[#passed + 1] = score
      end
    end
  end
  return passed
end

local any_opened = redis.call('EXISTS', p .. 'opened') == 1
local function take(set, list, queue, urgent, batches, size)
  local limit = math.min(remaining, (batches - redis.call('LLEN', list)) * size)
  if limit <= 0 then return end
  local rows = redis.call('ZRANGEBYSCORE', set, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  if any_opened then rows = without_opened(set, queue, rows) end
  if #rows == 0 then return end
  remaining = remaining - #rows / 2

  local ids = {}
  fly(set, rows, ids)
  if #ids == 0 then return end
  reply[2] = token
  reply[#reply + 1] = queue
  reply[#reply + 1] = urgent
  reply[#reply + 1] = ids
end

for i = 8, #ARGV, 3 do
  local queue, batches, size = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  take(p .. 'urgent:' .. queue, queue, queue, 1, batches, size)
end
for i = 8, #ARGV, 3 do
  local queue, batches, size = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  take(p .. 'due:' .. queue, queue .. mark, queue, 0, batches, size)
end
if reply[2] ~= '' then redis.call('SET', p .. 'outbox', cjson.encode(reply)) end
return reply
