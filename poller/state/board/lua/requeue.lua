-- requeue: an operator requeues dead letters. They go before routine polls, each at its instant.
--
-- KEYS[1] prefix            reads  spec, inflight, opened      writes  urgent:<queue>, due:<queue>, parked, held, released
-- ARGV    now in ms, then pairs: target id, instant in ms (1 = at once)
-- Returns for each id: due, inflight, gone, or opened: an operator keeps its breaker open.
local now = tonumber(ARGV[1])

local function requeue(id, instant)
  local queue = queue_of(id)
  if not queue then return 'gone' end
  if redis.call('ZSCORE', p .. 'inflight', id) then return 'inflight' end
  if opened_until(redis.call('HGET', p .. 'opened', id)) > now then return 'opened' end
  make_urgent(id, queue, instant)
  return 'due'
end

local reply = {}
for i = 2, #ARGV, 2 do reply[#reply + 1] = requeue(ARGV[i], ARGV[i + 1]) end
return reply
