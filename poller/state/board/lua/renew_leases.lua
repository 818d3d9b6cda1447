-- renew_leases: the clock was stepped; replace leases that no rule could have set. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  inflight
-- ARGV    leader token ('' = no election), now in ms, wait in the queue in ms, margin in ms
-- Returns {'NOTLEADER'} or the number of replaced leases.
--
-- After a step forward all leases seem to have run out while the workers go on. After a step back a lease may seem
-- to last for hours.
if not leads(ARGV[1]) then return NOT_LEADER end
local now, wait, margin = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local rows = redis.call('ZRANGE', p .. 'inflight', 0, -1, 'WITHSCORES')
local replaced = 0
for i = 1, #rows, 2 do
  local id, lease = rows[i], tonumber(rows[i + 1])
  local _, _, timeout = parse_spec(redis.call('HGET', p .. 'spec', id))
  local longest = now + math.max(wait, tonumber(timeout or 0)) + margin
  if lease < now or lease > longest then
    redis.call('ZADD', p .. 'inflight', longest, id)
    replaced = replaced + 1
  end
end
return replaced
