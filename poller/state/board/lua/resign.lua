-- resign: a leader that stops hands over at once.
--
-- KEYS[1] prefix            writes  redbeat::lock, leader, standbys      publishes on  wake
-- ARGV    token, name for people
-- Returns 1 if this token led, else 0.
redis.call('ZREM', p .. 'standbys', ARGV[2])
if redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return 0 end
redis.call('DEL', p .. 'redbeat::lock', p .. 'leader')
redis.call('PUBLISH', p .. 'wake', 'leader')
return 1
