-- finish: a worker is done with targets; each moves to its next place, in one step with its status.
--
-- KEYS[1] prefix            reads  run, spec, edited
--                           writes inflight, run, edited, due:<queue>, urgent:<queue>, parked, status, counts, stats:<n>, sites:<n>,
--                           totals, errors
-- ARGV    now in ms ('' = server clock), what the worker takes for now ('' = the same), claim token, number of targets n,
--         stats slice length in ms, stats lifetime in s,
--         then n times: id, place (due|urgent|parked), next instant in ms, version polled, status ('' = leave as it is);
--         then the number of error texts, these texts, and pairs for the statistics: field, increment ('lmax' takes the
--         maximum, 's:...' goes to the sites' own hash)
-- Returns one verdict for each target: ok, stale (the lease was taken over) or gone (removed meanwhile).
-- If the clock was stepped while it was polled, its next instant moves along.
-- A target that was edited while in flight falls due when `place` said, so that the edit takes effect.
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local step = ARGV[2] ~= '' and now - ARGV[2] or 0
if math.abs(step) < 30000 then step = 0 end -- it may also have waited for a server that stood still
local token, n = ARGV[3], tonumber(ARGV[4])
local ids = {}
for i = 1, n do ids[i] = ARGV[7 + (i - 1) * 5] end
local verdicts = {}
if n > 0 then
  local runs = redis.call('HMGET', p .. 'run', unpack(ids))
  local specs = redis.call('HMGET', p .. 'spec', unpack(ids))
  local before = redis.call('HMGET', p .. 'status', unpack(ids))
  local edited = redis.call('HMGET', p .. 'edited', unpack(ids))
  local leaving, status, counts, sets = {}, {}, {}, {}
  for i, id in ipairs(ids) do
    local at = 7 + (i - 1) * 5
    if not runs[i] or string.match(runs[i], '^([^|]*)|') ~= token then
      verdicts[i] = 'stale'
    else
      leaving[#leaving + 1] = id
      local version, queue = string.match(specs[i] or '', '^(%d+)|%d+|%d+|(.+)$')
      if not version then
        verdicts[i] = 'gone'
      else
        verdicts[i] = 'ok'
        local place, instant = ARGV[at + 1], ARGV[at + 2]
        if step ~= 0 then instant = string.format('%d', instant + step) end
        if version ~= ARGV[at + 3] then place, instant = 'due', tonumber(edited[i]) and edited[i] or now end
        local name = place == 'parked' and place or place .. ':' .. queue
        local set = sets[name] or {}
        sets[name] = set
        set[#set + 1] = instant
        set[#set + 1] = id
        local text = ARGV[at + 4]
        if text ~= '' then
          status[#status + 1] = id
          status[#status + 1] = text
          local new, old = string.match(text, '^%a+'), before[i] and string.match(before[i], '^%a+')
          if new ~= old then
            counts[new] = (counts[new] or 0) + 1
            if old then counts[old] = (counts[old] or 0) - 1 end
          end
        end
      end
    end
  end
  if #leaving > 0 then
    redis.call('ZREM', p .. 'inflight', unpack(leaving))
    redis.call('HDEL', p .. 'run', unpack(leaving))
    redis.call('HDEL', p .. 'edited', unpack(leaving))
  end
  for name, set in pairs(sets) do redis.call('ZADD', p .. name, unpack(set)) end
  if #status > 0 then redis.call('HSET', p .. 'status', unpack(status)) end
  for mark, change in pairs(counts) do redis.call('HINCRBY', p .. 'counts', mark, change) end
end
local at = 7 + n * 5
local texts = tonumber(ARGV[at])
if texts > 0 then
  redis.call('LPUSH', p .. 'errors', unpack(ARGV, at + 1, at + texts))
  redis.call('LTRIM', p .. 'errors', 0, 99)
end
at = at + texts + 1
if at <= #ARGV then
  local stats = p .. 'stats:' .. string.format('%d', math.floor(now / ARGV[5]))
  local sites = p .. 'sites:' .. string.format('%d', math.floor(now / ARGV[5]))
  for i = at, #ARGV, 2 do
    if string.sub(ARGV[i], 1, 2) == 's:' then
      redis.call('HINCRBY', sites, string.sub(ARGV[i], 3), ARGV[i + 1])
    elseif ARGV[i] == 'lmax' then
      local most = redis.call('HGET', stats, 'lmax')
      if not most or tonumber(most) < tonumber(ARGV[i + 1]) then redis.call('HSET', stats, 'lmax', ARGV[i + 1]) end
    else
      redis.call('HINCRBY', stats, ARGV[i], ARGV[i + 1])
      redis.call('HINCRBY', p .. 'totals', ARGV[i], ARGV[i + 1])
    end
  end
  redis.call('EXPIRE', stats, ARGV[6])
  redis.call('EXPIRE', sites, 300)
end
return verdicts
