-- claim: take due targets and move them in flight, in one step. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, urgent:<queue>, due:<queue>, barred, Celery's lists
--                           writes urgent:<queue>, due:<queue>, inflight, run, outbox, board
-- ARGV    leader token ('' = no election), now in ms ('' = server clock), lease in ms,
--         token of the last claim that was published ('' = none known), token of this claim,
--         targets to claim at most, mark of a list of routine batches,
--         then triples: queue, batches that may wait in each of its two lists, targets in each batch
-- Returns {'NOTLEADER'} or {now, token, again (0|1), then triples: queue, urgent (1|0), {ids}}
--
-- What is urgent goes before all routine polls; within each, the oldest first.
-- What a person barred is not taken but waits until the bar ends, unless a person asks for it: nobody else has to know.
-- The claim is written to the outbox in the same step. If the outbox holds another claim than the one
-- said to be published, that one is returned again instead (again = 1): a lost reply, a kill or a
-- SIGTERM between claim and publish strands nothing. `start` refuses what this publishes twice.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return {'NOTLEADER'} end
local now = ARGV[2]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
redis.call('HSET', p .. 'board', 'clock', now)
-- An outbox that nobody can read is dropped: the leases bring its targets back.
local function readable(text)
  local sound, reply = pcall(cjson.decode, text)
  if not sound or type(reply) ~= 'table' or type(reply[2]) ~= 'string' or reply[2] == '' then return nil end
  if #reply % 3 ~= 0 then return nil end
  for i = 4, #reply, 3 do
    if type(reply[i]) ~= 'string' or type(reply[i + 1]) ~= 'number' or type(reply[i + 2]) ~= 'table' then return nil end
    for _, id in ipairs(reply[i + 2]) do
      if type(id) ~= 'string' or id == '' or string.find(id, '%D') then return nil end
    end
  end
  return reply
end
local old = redis.call('GET', p .. 'outbox')
if old then
  local reply = readable(old)
  if reply and reply[2] ~= ARGV[4] then
    reply[1] = now
    reply[3] = 1
    return reply
  end
  redis.call('DEL', p .. 'outbox')
end
local lease = string.format('%d', now + ARGV[3])
local reply = {now, '', 0}
local left = tonumber(ARGV[6])

-- The rows are the first of their set: they leave it by rank, which costs the server far less than by name.
-- What is no target's number is nobody's: it goes.
local function fly(set, rows, ids)
  for from = 1, #rows, 2000 do
    local flight, runs, k = {}, {}, 0
    for j = from, math.min(from + 1999, #rows), 2 do
      local id, plan = rows[j], tonumber(rows[j + 1])
      if id ~= '' and not string.find(id, '%D') then
        if plan < 1000 then plan = tonumber(now) end -- asked for: due at once, see demand.lua
        ids[#ids + 1] = id
        flight[k + 1], flight[k + 2] = lease, id
        runs[k + 1], runs[k + 2] = id, string.format('%s|%d|0|', ARGV[5], plan)
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

local barred = redis.call('EXISTS', p .. 'barred') == 1
local function admitted(set, queue, rows)
  local pass = {}
  for from = 1, #rows, 2000 do
    local chunk = {}
    for j = from, math.min(from + 1999, #rows), 2 do chunk[#chunk + 1] = rows[j] end
    for k, bar in ipairs(redis.call('HMGET', p .. 'barred', unpack(chunk))) do
      local id, score = chunk[k], rows[from + 2 * k - 1]
      local ends = tonumber(bar and string.match(bar, '^(%d+)|') or 0)
      if ends > tonumber(now) and tonumber(score) >= 1000 then
        redis.call('ZREM', set, id)
        redis.call('ZADD', p .. 'due:' .. queue, ends, id)
      else
        pass[#pass + 1] = id
        pass[#pass + 1] = score
      end
    end
  end
  return pass
end

local function take(set, list, queue, urgent, most, size)
  local room = math.min(left, (most - redis.call('LLEN', list)) * size)
  if room <= 0 then return end
  local rows = redis.call('ZRANGEBYSCORE', set, '-inf', now, 'WITHSCORES', 'LIMIT', 0, room)
  if barred then rows = admitted(set, queue, rows) end
  if #rows == 0 then return end
  left = left - #rows / 2
  local ids = {}
  fly(set, rows, ids)
  if #ids == 0 then return end
  reply[2] = ARGV[5]
  reply[#reply + 1] = queue
  reply[#reply + 1] = urgent
  reply[#reply + 1] = ids
end

for i = 8, #ARGV, 3 do
  take(p .. 'urgent:' .. ARGV[i], ARGV[i], ARGV[i], 1, tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
end
for i = 8, #ARGV, 3 do
  take(p .. 'due:' .. ARGV[i], ARGV[i] .. ARGV[7], ARGV[i], 0, tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
end
if reply[2] ~= '' then redis.call('SET', p .. 'outbox', cjson.encode(reply)) end
return reply
