-- withhold: waiting targets of a dark site are held until the site is back. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  due:<queue>, urgent:<queue>, held
-- ARGV    leader token ('' = no election), site number, then target ids
-- Returns {'NOTLEADER'} or the number of moved targets. Targets in flight, parked or on demand stay where they are.
if not leads(ARGV[1]) then return NOT_LEADER end
local site, moved = ARGV[2], 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local queue = queue_of(id)
  if queue and not is_demanded(redis.call('ZSCORE', p .. 'urgent:' .. queue, id)) then
    if stop_waiting(id, queue) then
      redis.call('ZADD', p .. 'held', site, id)
      moved = moved + 1
    end
  end
end
return moved
