-- demand: poll targets at once, before all others. A target in flight is being polled already.
--
-- KEYS[1] prefix            reads  spec, inflight      writes  urgent:<queue>, due:<queue>, parked, held, released
-- ARGV    target ids
-- Returns {now, then for each id: due, inflight or gone}
local reply = {clock('')}
for _, id in ipairs(ARGV) do
  local queue = queue_of(id)
  if not queue then
    reply[#reply + 1] = 'gone'
  elseif redis.call('ZSCORE', p .. 'inflight', id) then
    reply[#reply + 1] = 'inflight'
  else
    make_urgent(id, queue, 1)
    reply[#reply + 1] = 'due'
  end
end
return reply
