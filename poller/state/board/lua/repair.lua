-- repair: put targets into exactly one place, whatever happened to the board. Safe beside a working leader.
--
-- KEYS[1] prefix            writes  all of the board      publishes on  domains
-- ARGV    state letter of a target that was never polled, then n times:
--         id, inventory version, spec ('' = no target of the board), instant at which a lost target is due
-- Returns for each id its damage: '' (none), lost, doubled, misplaced, unreadable or stray; several with spaces between.
--
-- A target whose spec on the board is newer than this inventory is left alone: it was edited meanwhile. So is a
-- target that is not on a board of a newer version: it was removed meanwhile.
local queues = redis.call('SMEMBERS', p .. 'queues')
local board_version = tonumber(redis.call('HGET', p .. 'board', 'version') or 0) or 0

local function waiting_places(id)
  local names = {}
  for _, queue in ipairs(queues) do
    for _, place in ipairs({'urgent:', 'due:'}) do
      if redis.call('ZSCORE', p .. place .. queue, id) then names[#names + 1] = place .. queue end
    end
  end
  for _, place in ipairs({'parked', 'held'}) do
    if redis.call('ZSCORE', p .. place, id) then names[#names + 1] = place end
  end
  return names
end

local function remove(id, places)
  for _, place in ipairs(places) do redis.call('ZREM', p .. place, id) end
  end_runs(id)
  for _, hash in ipairs({'spec', 'status', 'opened'}) do redis.call('HDEL', p .. hash, id) end
  redis.call('ZREM', p .. 'unwell', id)
  redis.call('SREM', p .. 'released', id)
  if redis.call('SREM', p .. 'troubled', id) == 1 then add_news(clock(''), 't' .. id) end
  forget_marks(clock(''), id)
end

-- Whether the target is in flight. Records of a flight that is over, or of one without a run, are removed.
local function in_flight(id)
  local flying = redis.call('ZSCORE', p .. 'inflight', id)
  if flying and redis.call('HGET', p .. 'run', id) then return true end
  if flying then redis.call('ZREM', p .. 'inflight', id) end
  redis.call('HDEL', p .. 'run', id)
  redis.call('HDEL', p .. 'edited', id)
  return false
end

local function keep_one_place(id, spec, old, instant, places, damage)
  local queue = queue_in(spec)
  local flying = in_flight(id)
  if flying and old ~= spec then redis.call('HSET', p .. 'edited', id, instant) end
  if flying and #places > 0 or #places > 1 then damage[#damage + 1] = 'doubled' end

  local valid = {parked = true, held = true, ['due:' .. queue] = true, ['urgent:' .. queue] = true}
  local kept = flying
  for _, place in ipairs(places) do
    if not kept and valid[place] then
      kept = true
    else
      redis.call('ZREM', p .. place, id)
      if #places == 1 and not flying and old == spec then damage[#damage + 1] = 'misplaced' end
    end
  end
  if not kept then
    if #places == 0 then damage[#damage + 1] = 'lost' end
    redis.call('ZADD', p .. 'due:' .. queue, instant, id)
  end
end

local reply, new_queues = {}, 0
for i = 2, #ARGV, 4 do
  local id, version, spec, instant = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local old = redis.call('HGET', p .. 'spec', id)
  local old_version = tonumber((parse_spec(old)))
  local damage = {}
  local removed_meanwhile = not old and spec ~= '' and board_version > version
  local edited_meanwhile = old_version and old_version > version
  if not removed_meanwhile and not edited_meanwhile then
    local places = waiting_places(id)
    if spec == '' then
      if old or #places > 0 or redis.call('HEXISTS', p .. 'marks', id) == 1 then
        damage[1] = 'stray'
        remove(id, places)
      end
    else
      if old and not old_version then damage[1] = 'unreadable' end
      redis.call('HSET', p .. 'spec', id, spec)
      new_queues = new_queues + redis.call('SADD', p .. 'queues', queue_in(spec))
      redis.call('HSETNX', p .. 'status', id, ARGV[1])
      keep_one_place(id, spec, old, instant, places, damage)
    end
  end
  reply[#reply + 1] = table.concat(damage, ' ')
end
if new_queues > 0 then redis.call('PUBLISH', p .. 'domains', 'came') end
return reply
