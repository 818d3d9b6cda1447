-- open_scrape: begin the poll of a scrape, unless its result is here, another caller began it, or too many run.
--
-- KEYS[1] prefix            reads and writes  scrape:<name>, scrapes, scrapers
-- ARGV    name of the poll, name of the caller, time of the poll in ms, most polls at a time, scraper
-- Returns {result, the result}, {pending}, {full}, {share, the scraper's most} or {send, the instant in ms}
--
-- Scrapers that asked for a poll within five minutes have equal shares of the polls; a single one may have all.
-- A repeated call of the same caller gets the same reply.
local name, time, most, scraper = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local mark = '?' .. ARGV[2] .. ' ' .. scraper
local found = redis.call('GET', p .. 'scrape:' .. name)
local now = clock('')
if found == mark then return {'send', now} end
if found and string.sub(found, 1, 1) == '?' then return {'pending'} end
if found then return {'result', found} end

local known = p .. 'scrapers'
redis.call('ZREMRANGEBYSCORE', known, '-inf', now)
redis.call('ZADD', known, now + 300000, scraper)
redis.call('PEXPIRE', known, 300000)
redis.call('ZREMRANGEBYSCORE', p .. 'scrapes', '-inf', now)
local running = redis.call('ZRANGE', p .. 'scrapes', 0, -1)
if #running >= most then return {'full'} end

local share = math.ceil(most / redis.call('ZCARD', known))
local own = 0
if share < most and #running >= share then
  for _, each in ipairs(running) do
    local sent = redis.call('GET', p .. 'scrape:' .. each)
    if sent and string.match(sent, '^%?%x+ (.*)$') == scraper then own = own + 1 end
  end
end
if own >= share then return {'share', share} end
redis.call('SET', p .. 'scrape:' .. name, mark, 'PX', time)
redis.call('ZADD', p .. 'scrapes', now + time, name)
return {'send', now}
