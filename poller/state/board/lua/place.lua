-- place: the inventory changed; the board is made to agree with it. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, inflight, parked, spec      writes  all of the board      says on  domains
-- ARGV    leader token ('' = no election), version of the board that this was made for ('*' = any, '' = none yet),
--         inventory version to note ('' = leave), state letter of a target never polled,
--         then n times: id, spec `version|interval|timeout|queue` ('' = removed or disabled), instant to place it at
-- Returns {'NOTLEADER'} or {placed, changed, removed}
--
-- New: due at the instant given. Changed: moves if its queue, interval or place asks for it, else keeps its slot;
-- parked ones, and others that wait longer than their interval, come back, since somebody may have mended them.
-- In flight: takes effect at `finish`, which learns of it, and of a removal, by a note in `edited`.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return {'NOTLEADER'} end
-- A packet that comes late, after somebody else brought the board further, must not bring it back.
if ARGV[2] ~= '*' and (redis.call('HGET', p .. 'board', 'version') or '') ~= ARGV[2] then return {'NOTLEADER'} end
local placed, changed, removed, came = 0, 0, 0, 0
local needs = {}
local function parts(spec) return string.match(spec, '^%d+|(%d+)|%d+|(.+)$') end
local function need(queue, interval, sign)
  needs[queue] = (needs[queue] or 0) + sign * math.max(1, math.floor(1e9 / interval)) -- never 0: see domains.lua
end
local function leave(id, queues)
  for _, queue in ipairs(queues) do
    redis.call('ZREM', p .. 'urgent:' .. queue, id)
    redis.call('ZREM', p .. 'due:' .. queue, id)
  end
end
local function forget(id, interval, queue)
  leave(id, queue and {queue} or redis.call('SMEMBERS', p .. 'queues'))
  if queue then need(queue, interval, -1) end
  redis.call('ZREM', p .. 'parked', id)
  redis.call('ZREM', p .. 'held', id)
  redis.call('HDEL', p .. 'spec', id)
  if redis.call('ZSCORE', p .. 'inflight', id) then redis.call('HSET', p .. 'edited', id, '') end
  redis.call('HDEL', p .. 'barred', id)
  redis.call('SREM', p .. 'returned', id)
  local status = redis.call('HGET', p .. 'status', id)
  redis.call('HDEL', p .. 'status', id)
  redis.call('HINCRBY', p .. 'counts', status and string.match(status, '^%a+') or ARGV[4], -1)
end
local function change(id, spec, instant, was, from)
  local interval, queue = parts(spec)
  local parked = redis.call('ZREM', p .. 'parked', id) == 1
  need(from, was, -1)
  need(queue, interval, 1)
  local urgent = redis.call('ZSCORE', p .. 'urgent:' .. from, id)
  local slot = redis.call('ZSCORE', p .. 'due:' .. from, id) or urgent or 0
  if redis.call('ZSCORE', p .. 'inflight', id) then
    redis.call('HSET', p .. 'edited', id, instant)
  elseif redis.call('ZSCORE', p .. 'held', id) then
    return -- its site is dark: it comes back with it
  elseif queue ~= from or interval ~= was or parked or tonumber(slot) > instant + interval then
    leave(id, {from})
    if urgent and tonumber(urgent) < 1000 then -- asked for, see demand.lua
      redis.call('ZADD', p .. 'urgent:' .. queue, 1, id)
    else
      redis.call('ZADD', p .. (urgent and 'urgent:' or 'due:') .. queue, instant, id)
    end
  end
end
for i = 5, #ARGV, 3 do
  local id, spec, instant = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local old = redis.call('HGET', p .. 'spec', id)
  local was, from
  if old then was, from = parts(old) end
  if old and (spec == '' or not from) then -- removed, or a spec that nobody can read: it starts anew
    forget(id, was, from)
    removed = removed + 1
    old = false
  end
  if spec ~= '' and spec ~= old then
    local interval, queue = parts(spec)
    redis.call('HSET', p .. 'spec', id, spec)
    came = came + redis.call('SADD', p .. 'queues', queue)
    if old then
      changed = changed + 1
      change(id, spec, instant, was, from)
    else
      placed = placed + 1
      need(queue, interval, 1)
      redis.call('HSET', p .. 'status', id, ARGV[4])
      redis.call('HINCRBY', p .. 'counts', ARGV[4], 1)
      if redis.call('ZSCORE', p .. 'inflight', id) then
        redis.call('HSET', p .. 'edited', id, instant)
      else
        redis.call('ZADD', p .. 'due:' .. queue, instant, id)
      end
    end
  end
end
for queue, change in pairs(needs) do
  if change ~= 0 then redis.call('HINCRBY', p .. 'needs', queue, change) end
end
if ARGV[3] ~= '' then redis.call('HSET', p .. 'board', 'version', ARGV[3]) end
if came > 0 then redis.call('PUBLISH', p .. 'domains', 'came') end
return {placed, changed, removed}
