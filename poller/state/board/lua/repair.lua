-- repair: put targets into exactly one place, whatever happened to the board. Safe beside a working leader.
--
-- KEYS[1] prefix            writes  all of the board      says on  domains
-- ARGV    state letter of a target never polled, then n times:
--         id, its version in the inventory, spec ('' = should not be here), instant to place it at if it is nowhere
-- Returns for each id what was wrong: '' (nothing), lost, doubled, misplaced, unreadable or stray; several with spaces between.
--
-- A target that the board knows in a newer version than we do is let be: somebody edited it meanwhile. So is one that it
-- does not know, if it is further than we are: somebody removed it meanwhile.
local p = KEYS[1]
local queues = redis.call('SMEMBERS', p .. 'queues')
local reached = tonumber(redis.call('HGET', p .. 'board', 'version') or 0) or 0
local function version(spec) return spec and tonumber(string.match(spec, '^(%d+)|%d+|%d+|.+$')) end
local function places(id)
  local found = {}
  for _, queue in ipairs(queues) do
    for _, kind in ipairs({'urgent:', 'due:'}) do
      if redis.call('ZSCORE', p .. kind .. queue, id) then found[#found + 1] = kind .. queue end
    end
  end
  for _, set in ipairs({'parked', 'held'}) do
    if redis.call('ZSCORE', p .. set, id) then found[#found + 1] = set end
  end
  return found
end
local function remove(id, found)
  for _, set in ipairs(found) do redis.call('ZREM', p .. set, id) end
  redis.call('ZREM', p .. 'inflight', id)
  for _, hash in ipairs({'spec', 'status', 'run', 'edited', 'barred'}) do redis.call('HDEL', p .. hash, id) end
  redis.call('SREM', p .. 'returned', id)
end
local function settle(id, spec, old, instant, found, wrong)
  local queue = string.match(spec, '^%d+|%d+|%d+|(.+)$')
  local flying = redis.call('ZSCORE', p .. 'inflight', id)
  if flying and not redis.call('HGET', p .. 'run', id) then
    redis.call('ZREM', p .. 'inflight', id)
    flying = false
  end
  if not flying then
    redis.call('HDEL', p .. 'run', id)
    redis.call('HDEL', p .. 'edited', id)
  elseif old ~= spec then
    redis.call('HSET', p .. 'edited', id, instant)
  end
  local keep = flying and 'inflight'
  if flying and #found > 0 or #found > 1 then wrong[#wrong + 1] = 'doubled' end
  for _, set in ipairs(found) do
    if not keep and (set == 'parked' or set == 'held' or set == 'due:' .. queue or set == 'urgent:' .. queue) then
      keep = set
    else
      redis.call('ZREM', p .. set, id)
      if #found == 1 and not flying and old == spec then wrong[#wrong + 1] = 'misplaced' end
    end
  end
  if not keep then
    if #found == 0 then wrong[#wrong + 1] = 'lost' end
    redis.call('ZADD', p .. 'due:' .. queue, instant, id)
  end
end
local reply, came = {}, 0
for i = 2, #ARGV, 4 do
  local id, newest, spec, instant = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local old = redis.call('HGET', p .. 'spec', id)
  local has = version(old)
  local wrong = {}
  local removed = not old and spec ~= '' and reached > newest
  if not removed and (not has or has <= newest) then
    local found = places(id)
    if spec == '' then
      if old or #found > 0 then
        wrong[1] = 'stray'
        remove(id, found)
      end
    else
      if old and not has then wrong[1] = 'unreadable' end
      redis.call('HSET', p .. 'spec', id, spec)
      came = came + redis.call('SADD', p .. 'queues', (string.match(spec, '^%d+|%d+|%d+|(.+)$')))
      redis.call('HSETNX', p .. 'status', id, ARGV[1])
      settle(id, spec, old, instant, found, wrong)
    end
  end
  reply[#reply + 1] = table.concat(wrong, ' ')
end
if came > 0 then redis.call('PUBLISH', p .. 'domains', 'came') end
return reply
