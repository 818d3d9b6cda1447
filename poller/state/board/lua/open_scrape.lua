-- open_scrape: begin the poll of a scrape, unless its result is here, another caller began it, or too many run.
--
-- KEYS[1] prefix            reads and writes  scrape:<name>, scrapes
-- ARGV    name of the poll, name of the caller, time of the poll in ms, most polls at a time
-- Returns {result, the result}, {pending}, {full} or {send, the instant in ms}
--
-- A repeated call of the same caller gets the same reply.
local name, mark, time, most = ARGV[1], '?' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call('GET', p .. 'scrape:' .. name)
local now = clock('')
if found == mark then return {'send', now} end
if found and string.sub(found, 1, 1) == '?' then return {'pending'} end
if found then return {'result', found} end
redis.call('ZREMRANGEBYSCORE', p .. 'scrapes', '-inf', now)
if redis.call('ZCARD', p .. 'scrapes') >= most then return {'full'} end
redis.call('SET', p .. 'scrape:' .. name, mark, 'PX', time)
redis.call('ZADD', p .. 'scrapes', now + time, name)
return {'send', now}
