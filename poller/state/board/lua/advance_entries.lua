-- advance_entries: set the next instant of jobs that were fired. An entry that was removed meanwhile stays removed.
--
-- KEYS[1] prefix            writes  redbeat::schedule, redbeat:job:*
-- ARGV    for each entry: key, next instant in seconds, meta as RedBeat writes it
-- Returns the number of entries that are set.
local schedule = p .. 'redbeat::schedule'
local set = 0
for i = 1, #ARGV, 3 do
  if redis.call('ZSCORE', schedule, ARGV[i]) then
    redis.call('ZADD', schedule, ARGV[i + 1], ARGV[i])
    redis.pcall('HSET', ARGV[i], 'meta', ARGV[i + 2])
    set = set + 1
  end
end
return set
