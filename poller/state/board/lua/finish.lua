-- finish: a worker is done with targets; each moves to its next place, in one step with its status.
--
-- KEYS[1] prefix            reads  run, edited, spec, status
--                           writes inflight, run, edited, due:<queue>, urgent:<queue>, parked, status, counts, stats:<n>, sites:<n>,
--                           totals, errors
-- ARGV    now in ms ('' = server clock), what the worker takes for now ('' = the same), claim token,
--         stats slice length in ms, stats lifetime in s, queue of the steady targets, number of these, number of all targets n,
--         then n times, the steady ones first: id, next instant in ms (after u: urgent, after p: parked),
--         status ('' = leave as it is);
--         then the number of error texts, these texts, and pairs for the statistics: field, increment ('lmax' takes the
--         maximum, 's:...' goes to the sites' own hash)
-- Returns pairs of an id that did not move and why: stale (the lease was taken over) or gone (removed meanwhile).
--
-- Steady ones were well and are well: their mark is the same and they wait for their next slot, so nothing else has to be
-- read. All others are looked at closely, and so is everybody while targets in flight were edited or the clock was stepped:
-- an edited target falls due when `place` said, so that the edit takes effect; next instants move along with the clock.
local p = KEYS[1]
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local step = ARGV[2] ~= '' and now - ARGV[2] or 0
if math.abs(step) < 30000 then step = 0 end -- it may also have waited for a server that stood still
local head, queue, steady, n = ARGV[3] .. '|', ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local FIRST = 9
local edited = redis.call('EXISTS', p .. 'edited') == 1
if edited or step ~= 0 then steady = 0 end

local ids, runs, leaving, refused, status, counts = {}, {}, {}, {}, {}, {}
local function refuse(id, why)
  refused[#refused + 1] = id
  refused[#refused + 1] = why
end
-- Takes it out of the air, if it is the worker's.
local function lands(i)
  local run = runs[i]
  if run and string.sub(run, 1, #head) == head then
    leaving[#leaving + 1] = ids[i]
    return true
  end
  refuse(ids[i], 'stale')
end

local function land_steady()
  local due, k = {}, 0
  for i = 1, steady do
    if lands(i) then
      local id, at = ids[i], FIRST + 3 * (i - 1)
      due[k + 1], due[k + 2] = ARGV[at + 1], id
      status[k + 1], status[k + 2] = id, ARGV[at + 2]
      k = k + 2
    end
  end
  if k > 0 then redis.call('ZADD', p .. 'due:' .. queue, unpack(due)) end
end

local function land_others()
  local others = {unpack(ids, steady + 1)}
  local specs = redis.call('HMGET', p .. 'spec', unpack(others))
  local before = redis.call('HMGET', p .. 'status', unpack(others))
  local notes = edited and redis.call('HMGET', p .. 'edited', unpack(others)) or {}
  local sets = {}
  local function wait(id, home, kind, instant)
    local name = kind == 'p' and 'parked' or (kind == 'u' and 'urgent:' or 'due:') .. home
    local set = sets[name] or {}
    sets[name] = set
    set[#set + 1] = instant
    set[#set + 1] = id
  end
  local function note(id, text, was)
    status[#status + 1] = id
    status[#status + 1] = text
    local new, old = string.match(text, '^%a+'), was and string.match(was, '^%a+')
    if new ~= old then
      counts[new] = (counts[new] or 0) + 1
      if old then counts[old] = (counts[old] or 0) - 1 end
    end
  end
  for j, id in ipairs(others) do
    local home = string.match(specs[j] or '', '^%d+|%d+|%d+|(.+)$')
    if lands(steady + j) then
      local at = FIRST + 3 * (steady + j - 1)
      local kind, instant = string.match(ARGV[at + 1], '^(%a?)(.*)$')
      if step ~= 0 then instant = string.format('%d', instant + step) end
      if notes[j] then kind, instant = '', tonumber(notes[j]) and notes[j] or now end
      if not home then
        refuse(id, 'gone')
      else
        wait(id, home, kind, instant)
        if ARGV[at + 2] ~= '' then note(id, ARGV[at + 2], before[j]) end
      end
    end
  end
  for name, set in pairs(sets) do redis.call('ZADD', p .. name, unpack(set)) end
end

if n > 0 then
  for i = 1, n do ids[i] = ARGV[FIRST + 3 * (i - 1)] end
  runs = redis.call('HMGET', p .. 'run', unpack(ids))
  land_steady()
  if steady < n then land_others() end
  if #leaving > 0 then
    redis.call('ZREM', p .. 'inflight', unpack(leaving))
    redis.call('HDEL', p .. 'run', unpack(leaving))
    if edited then redis.call('HDEL', p .. 'edited', unpack(leaving)) end
  end
  if #status > 0 then redis.call('HSET', p .. 'status', unpack(status)) end
end

-- A sum that somebody spoiled starts anew: it must not keep a target in two places.
local function add(hash, field, change)
  local sum = redis.pcall('HINCRBY', hash, field, change)
  if type(sum) == 'table' then redis.call('HSET', hash, field, change) end
end
for mark, change in pairs(counts) do add(p .. 'counts', mark, change) end
if n > 0 and #leaving == 0 then return refused end -- also what is said twice, because an answer got lost, counts once

local at = FIRST + 3 * n
local texts = tonumber(ARGV[at])
if texts > 0 then
  redis.call('LPUSH', p .. 'errors', unpack(ARGV, at + 1, at + texts))
  redis.call('LTRIM', p .. 'errors', 0, 99)
end
at = at + texts + 1
if at <= #ARGV then
  local slice = string.format('%d', math.floor(now / ARGV[4]))
  local stats, sites = p .. 'stats:' .. slice, p .. 'sites:' .. slice
  for i = at, #ARGV, 2 do
    if string.sub(ARGV[i], 1, 2) == 's:' then
      add(sites, string.sub(ARGV[i], 3), ARGV[i + 1])
    elseif ARGV[i] == 'lmax' then
      local most = redis.call('HGET', stats, 'lmax')
      if (tonumber(most or 0) or 0) < tonumber(ARGV[i + 1]) then redis.call('HSET', stats, 'lmax', ARGV[i + 1]) end
    else
      add(stats, ARGV[i], ARGV[i + 1])
      add(p .. 'totals', ARGV[i], ARGV[i + 1])
    end
  end
  redis.call('EXPIRE', stats, ARGV[5])
  redis.call('EXPIRE', sites, 300)
end
return refused
