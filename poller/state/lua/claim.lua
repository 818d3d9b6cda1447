-- claim: take due targets and move them in flight, in one step. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, due:<queue>, <queue>      writes  due:<queue>, inflight, run, outbox
-- ARGV    leader token ('' = no election), now in ms ('' = server clock), lease in ms,
--         token of the last claim that was published ('' = none known), token of this claim,
--         targets to claim at most, targets per batch, batches that may wait in a queue, then the queues
-- Returns {'NOTLEADER'} or {now, token, again (0|1), first due or '', queue, {ids}, queue, {ids}, ...}
--
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
local old = redis.call('GET', p .. 'outbox')
if old then
  local reply = cjson.decode(old)
  if reply[2] ~= ARGV[4] then
    reply[1] = now
    reply[3] = 1
    return reply
  end
  redis.call('DEL', p .. 'outbox')
end
local lease = now + ARGV[3]
local reply = {now, '', 0, ''}
local first
local left, size, most = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
for i = 9, #ARGV do
  local due = p .. 'due:' .. ARGV[i]
  local room = math.min(left, (most - redis.call('LLEN', ARGV[i])) * size)
  local rows = {}
  if room > 0 then rows = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'WITHSCORES', 'LIMIT', 0, room) end
  left = left - #rows / 2
  if #rows > 0 then
    reply[2] = ARGV[5]
    local ids = {}
    for from = 1, #rows, 2000 do
      local to = math.min(from + 1999, #rows)
      local flight, runs, chunk = {}, {}, {}
      for j = from, to, 2 do
        local id, plan = rows[j], tonumber(rows[j + 1])
        if plan < 1000 then plan = tonumber(now) end -- asked for: due at once, see demand.lua
        chunk[#chunk + 1] = id
        ids[#ids + 1] = id
        flight[#flight + 1] = lease
        flight[#flight + 1] = id
        runs[#runs + 1] = id
        runs[#runs + 1] = string.format('%s|%d|0|', reply[2], plan)
      end
      redis.call('ZADD', p .. 'inflight', unpack(flight))
      redis.call('HSET', p .. 'run', unpack(runs))
      redis.call('ZREM', due, unpack(chunk))
    end
    reply[#reply + 1] = ARGV[i]
    reply[#reply + 1] = ids
  end
  local head = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  if #head > 0 and (not first or tonumber(head[2]) < first) then first = tonumber(head[2]) end
end
if first then reply[4] = string.format('%d', first) end
if reply[2] ~= '' then redis.call('SET', p .. 'outbox', cjson.encode(reply)) end
return reply
