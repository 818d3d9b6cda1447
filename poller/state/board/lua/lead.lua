-- lead: take or renew the leadership. A lock that already holds our own token is adopted: a request that timed out
-- and was executed late makes no second leader.
--
-- KEYS[1] prefix            reads and writes  redbeat::lock, epoch, leader      writes  standbys
-- ARGV    token (one per process), lock time in ms, name for people, renew only (1) or take as well (0)
-- Returns {0, 0} when another process leads, else {epoch, 1 if newly taken}
local token, lock_ms, name, renew_only = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local lock = p .. 'redbeat::lock'
local holder = redis.call('GET', lock)
if holder and holder ~= token then
  -- A lock that outlives the time its holder requested, or never ends: the clock was set back and the holder may
  -- be dead, since a living one would have renewed. A living holder stands by after its next move is refused.
  local record = redis.call('HMGET', p .. 'leader', 'token', 'lock_ms')
  local remaining = redis.call('PTTL', lock)
  local recorded_ms = record[1] == holder and tonumber(record[2])
  local is_valid = remaining >= 0 and (not recorded_ms or remaining <= recorded_ms + 1000)
  if is_valid or renew_only then return {0, 0} end
  holder = false
end
if not holder and renew_only then return {0, 0} end
if holder then
  local epoch = tonumber(redis.call('HGET', p .. 'leader', 'epoch'))
  if epoch then
    redis.call('SET', lock, token, 'PX', lock_ms)
    return {epoch, 0}
  end
end

if not tonumber(redis.call('GET', p .. 'epoch') or 0) then redis.call('DEL', p .. 'epoch') end
local epoch = redis.call('INCR', p .. 'epoch')
redis.call('SET', lock, token, 'PX', lock_ms)
redis.call('HSET', p .. 'leader', 'token', token, 'name', name, 'epoch', epoch,
  'lock_ms', lock_ms, 'since', clock(''))
redis.call('ZREM', p .. 'standbys', name)
return {epoch, 1}
