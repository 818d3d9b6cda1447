-- announce: write the heartbeat of a worker at the server's time.
--
-- KEYS[1] prefix            writes  workers      publishes on  wake
-- ARGV    key of the worker, its entry before the time and after it, 1 to wake the leader
-- Returns the time in ms.
local now = clock('')
redis.call('HSET', p .. 'workers', ARGV[1], ARGV[2] .. now .. ARGV[3])
if ARGV[4] == '1' then redis.call('PUBLISH', p .. 'wake', 'worker') end
return now
