-- place: the inventory changed; bring the board up to it. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, inflight, parked, spec      writes  all of the board
--                           publishes on  domains
-- ARGV    leader token ('' = no election), version of the board that the specs were read for ('*' = any, '' = new board),
--         inventory version to store ('' = none), state letter of a target that was never polled,
--         then n times: id, spec ('' = removed or disabled), instant at which a new target is due
-- Returns {'NOTLEADER'} or {placed, changed, removed}
--
-- New: due at the instant given. Changed: moves if its queue, interval or place requires it, else keeps its slot.
-- A parked target, or one that waits longer than its interval, comes back: the edit may have repaired it.
-- In flight: the edit, or the removal, takes effect at `finish`, by a record in `edited`.
if not leads(ARGV[1]) then return NOT_LEADER end
-- A late call must not set back a board that another leader brought further.
local since = ARGV[2]
if since ~= '*' and (redis.call('HGET', p .. 'board', 'version') or '') ~= since then return NOT_LEADER end
local new_version, unknown = ARGV[3], ARGV[4]
local now = clock('')
local placed, changed, removed, new_queues = 0, 0, 0, 0
local needs = {}

local function need(queue, interval, sign)
  needs[queue] = (needs[queue] or 0) + sign * polls_needed(interval)
end

local function remove(id, interval, queue)
  if queue then
    stop_waiting(id, queue)
    need(queue, interval, -1)
  else
    for _, each in ipairs(redis.call('SMEMBERS', p .. 'queues')) do stop_waiting(id, each) end
  end
  redis.call('ZREM', p .. 'parked', id)
  redis.call('ZREM', p .. 'held', id)
  redis.call('HDEL', p .. 'spec', id)
  if redis.call('ZSCORE', p .. 'inflight', id) then redis.call('HSET', p .. 'edited', id, '') end
  redis.call('HDEL', p .. 'opened', id)
  redis.call('SREM', p .. 'released', id)
  if redis.call('SREM', p .. 'troubled', id) == 1 then add_news(now, 't' .. id) end
  forget_marks(now, id)
  local status = redis.call('HGET', p .. 'status', id)
  redis.call('HDEL', p .. 'status', id)
  redis.call('ZREM', p .. 'unwell', id)
  redis.call('HINCRBY', p .. 'counts', status and mark_of(status) or unknown, -1)
end

local function change(id, instant, interval, queue, old_interval, old_queue)
  local parked = redis.call('ZREM', p .. 'parked', id) == 1
  need(old_queue, old_interval, -1)
  need(queue, interval, 1)
  local urgent = redis.call('ZSCORE', p .. 'urgent:' .. old_queue, id)
  local slot = redis.call('ZSCORE', p .. 'due:' .. old_queue, id) or urgent or 0
  local edited = queue ~= old_queue or interval ~= old_interval
  if redis.call('ZSCORE', p .. 'inflight', id) then
    redis.call('HSET', p .. 'edited', id, instant)
  elseif redis.call('ZSCORE', p .. 'held', id) then
    return -- it is released with its site
  elseif edited or parked or tonumber(slot) > instant + interval then
    stop_waiting(id, old_queue)
    if is_demanded(urgent) then
      redis.call('ZADD', p .. 'urgent:' .. queue, 1, id)
    else
      redis.call('ZADD', p .. (urgent and 'urgent:' or 'due:') .. queue, instant, id)
    end
  end
end

local function add_target(id, instant, interval, queue)
  need(queue, interval, 1)
  redis.call('HSET', p .. 'status', id, unknown)
  redis.call('ZADD', p .. 'unwell', 0, id)
  redis.call('HINCRBY', p .. 'counts', unknown, 1)
  if redis.call('ZSCORE', p .. 'inflight', id) then
    redis.call('HSET', p .. 'edited', id, instant)
  else
    redis.call('ZADD', p .. 'due:' .. queue, instant, id)
  end
end

for i = 5, #ARGV, 3 do
  local id, spec, instant = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local old = redis.call('HGET', p .. 'spec', id)
  local _, old_interval, _, old_queue = parse_spec(old)
  if old and (spec == '' or not old_queue) then -- a target with a damaged spec is placed as a new one
    remove(id, old_interval, old_queue)
    removed = removed + 1
    old = false
  end
  if spec ~= '' and spec ~= old then
    local _, interval, _, queue = parse_spec(spec)
    redis.call('HSET', p .. 'spec', id, spec)
    new_queues = new_queues + redis.call('SADD', p .. 'queues', queue)
    if old then
      changed = changed + 1
      change(id, instant, interval, queue, old_interval, old_queue)
    else
      placed = placed + 1
      add_target(id, instant, interval, queue)
    end
  end
end
for queue, change in pairs(needs) do
  if change ~= 0 then redis.call('HINCRBY', p .. 'needs', queue, change) end
end
if new_version ~= '' then redis.call('HSET', p .. 'board', 'version', new_version) end
if new_queues > 0 then redis.call('PUBLISH', p .. 'domains', 'came') end
return {placed, changed, removed}
