-- place: the inventory changed; the board is made to agree with it. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, inflight, parked, spec      writes  all of the board
-- ARGV    leader token ('' = no election), inventory version to note ('' = leave), state letter of a target never polled,
--         then n times: id, spec `version|interval|timeout|queue` ('' = removed or disabled), instant to place it at
-- Returns {'NOTLEADER'} or {placed, changed, removed}
--
-- New: due at the instant given. Changed: moves if its queue, interval or place asks for it, else keeps its slot;
-- parked ones come back, since somebody may have mended them. In flight: takes effect at `finish`.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return {'NOTLEADER'} end
local placed, changed, removed = 0, 0, 0
local function parts(spec) return string.match(spec, '^%d+|(%d+)|%d+|(.*)$') end
local function forget(id, old)
  local _, queue = parts(old)
  redis.call('ZREM', p .. 'due:' .. queue, id)
  redis.call('ZREM', p .. 'parked', id)
  redis.call('HDEL', p .. 'spec', id)
  local status = redis.call('HGET', p .. 'status', id)
  redis.call('HDEL', p .. 'status', id)
  redis.call('HINCRBY', p .. 'counts', status and string.sub(status, 1, 1) or ARGV[3], -1)
end
for i = 4, #ARGV, 3 do
  local id, spec, instant = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local old = redis.call('HGET', p .. 'spec', id)
  if spec == '' then
    if old then
      forget(id, old)
      removed = removed + 1
    end
  elseif spec ~= old then
    local interval, queue = parts(spec)
    redis.call('HSET', p .. 'spec', id, spec)
    redis.call('SADD', p .. 'queues', queue)
    local flying = redis.call('ZSCORE', p .. 'inflight', id)
    if not old then
      placed = placed + 1
      redis.call('HSET', p .. 'status', id, ARGV[3])
      redis.call('HINCRBY', p .. 'counts', ARGV[3], 1)
      if not flying then redis.call('ZADD', p .. 'due:' .. queue, instant, id) end
    else
      changed = changed + 1
      local was, from = parts(old)
      local parked = redis.call('ZREM', p .. 'parked', id) == 1
      if not flying and (queue ~= from or interval ~= was or parked) then
        redis.call('ZREM', p .. 'due:' .. from, id)
        redis.call('ZADD', p .. 'due:' .. queue, instant, id)
      end
    end
  end
end
if ARGV[2] ~= '' then redis.call('HSET', p .. 'board', 'version', ARGV[2]) end
return {placed, changed, removed}
