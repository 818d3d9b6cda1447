-- leases: the clock was stepped; leases that no rule could have given are given anew. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  inflight
-- ARGV    leader token ('' = no election), now in ms, wait in the queue in ms, margin in ms
-- Returns 'NOTLEADER' or how many leases were changed.
--
-- Forward: all leases seem to have run out, while the workers go on. Backward: a lease may seem to last for hours.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return 'NOTLEADER' end
local now, wait, margin = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local rows = redis.call('ZRANGE', p .. 'inflight', 0, -1, 'WITHSCORES')
local changed = 0
for i = 1, #rows, 2 do
  local id, lease = rows[i], tonumber(rows[i + 1])
  local timeout = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|%d+|(%d+)|')
  local longest = now + math.max(wait, tonumber(timeout or 0)) + margin
  if lease < now or lease > longest then
    redis.call('ZADD', p .. 'inflight', longest, id)
    changed = changed + 1
  end
end
return changed
