-- lead: take or renew leadership. Adopts a lock that already holds our own token, so that a request
-- which timed out but was executed late never makes a ghost leader.
--
-- KEYS[1] prefix            writes  redbeat::lock, epoch, leader
-- ARGV    token (one per process), lock time in ms, name for people, renew only (1) or take as well (0)
-- Returns {0, 0} when somebody else leads, else {epoch, 1 if newly taken}
local p = KEYS[1]
local held = redis.call('GET', p .. 'redbeat::lock')
if held and held ~= ARGV[1] then
  -- A lock that lives longer than its holder ever asked for: the clock was set back, and the holder may be gone;
  -- or one that never ends, which no holder asks for.
  -- Were it alive it would have renewed by now; and if it is, its next move is refused and it stands by.
  local known = redis.call('HMGET', p .. 'leader', 'token', 'lock_ms')
  local left = redis.call('PTTL', p .. 'redbeat::lock')
  local believed = left >= 0 and (known[1] ~= held or not tonumber(known[2]) or left <= known[2] + 1000)
  if believed or ARGV[4] == '1' then return {0, 0} end
  held = false
end
if not held and ARGV[4] == '1' then return {0, 0} end
if held then
  local epoch = tonumber(redis.call('HGET', p .. 'leader', 'epoch'))
  if epoch then
    redis.call('SET', p .. 'redbeat::lock', ARGV[1], 'PX', ARGV[2])
    return {epoch, 0}
  end
end
local t = redis.call('TIME')
if not tonumber(redis.call('GET', p .. 'epoch') or 0) then redis.call('DEL', p .. 'epoch') end
local epoch = redis.call('INCR', p .. 'epoch')
redis.call('SET', p .. 'redbeat::lock', ARGV[1], 'PX', ARGV[2])
redis.call('HSET', p .. 'leader', 'token', ARGV[1], 'name', ARGV[3], 'epoch', epoch,
  'lock_ms', ARGV[2], 'since', string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000)))
return {epoch, 1}
