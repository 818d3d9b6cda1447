-- hold: a worker has results and is about to write them; are the runs still its own? Their leases may be prolonged.
--
-- KEYS[1] prefix            reads  run, edited, spec      writes  inflight, run, edited
-- ARGV    now in ms ('' = server clock), claim token, lease from now in ms (0 = as it is), then target ids
-- Returns pairs of an id that is not its own any more and why: stale (a worker that was paused beyond its lease writes
-- nothing over its successor) or gone (removed meanwhile: nobody wants its readings, and the run is over).
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local head, length = ARGV[2] .. '|', tonumber(ARGV[3])
local ids = {unpack(ARGV, 4)}
local ends = string.format('%d', now + length)
-- Nobody is removed in flight without a note.
local edited = redis.call('EXISTS', p .. 'edited') == 1
local refused, flight = {}, {}
local function refuse(id, why)
  refused[#refused + 1] = id
  refused[#refused + 1] = why
end
for i, run in ipairs(redis.call('HMGET', p .. 'run', unpack(ids))) do
  local id = ids[i]
  local mine = run and string.sub(run, 1, #head) == head
  local gone = (edited or not mine) and redis.call('HEXISTS', p .. 'spec', id) == 0
  if mine and gone then
    redis.call('HDEL', p .. 'run', id)
    redis.call('HDEL', p .. 'edited', id)
    redis.call('ZREM', p .. 'inflight', id)
  end
  if not mine or gone then
    refuse(id, gone and (mine or not run) and 'gone' or 'stale')
  elseif length > 0 then
    flight[#flight + 1] = ends
    flight[#flight + 1] = id
  end
end
if #flight > 0 then redis.call('ZADD', p .. 'inflight', 'GT', unpack(flight)) end
return refused
