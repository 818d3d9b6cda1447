-- hold: a worker has results and is about to write them; confirm its runs, and extend their leases if it asks for that.
--
-- KEYS[1] prefix            reads  run, edited, spec      writes  inflight, run, edited
-- ARGV    now in ms ('' = server clock), claim token, lease from now in ms (0 = as it is), then target ids
-- Returns pairs of an id whose results are discarded and the reason: stale (another claim has the target: a worker
-- that was paused beyond its lease writes nothing over its successor) or gone (removed; the run ends here).
local now, head, lease_ms = clock(ARGV[1]), ARGV[2] .. '|', tonumber(ARGV[3])
local ids = {unpack(ARGV, 4)}
local lease = string.format('%d', now + lease_ms)
-- A target that was removed in flight has a record in `edited`.
local edited = redis.call('EXISTS', p .. 'edited') == 1
local refused, flight = {}, {}

local function refuse(id, reason)
  refused[#refused + 1] = id
  refused[#refused + 1] = reason
end

for i, run in ipairs(redis.call('HMGET', p .. 'run', unpack(ids))) do
  local id = ids[i]
  local owned = run and string.sub(run, 1, #head) == head
  local gone = (edited or not owned) and redis.call('HEXISTS', p .. 'spec', id) == 0
  if owned and gone then end_runs(id) end
  if not owned or gone then
    refuse(id, gone and (owned or not run) and 'gone' or 'stale')
  elseif lease_ms > 0 then
    flight[#flight + 1] = lease
    flight[#flight + 1] = id
  end
end
if #flight > 0 then redis.call('ZADD', p .. 'inflight', 'GT', unpack(flight)) end
return refused
