-- finish: a worker is done with targets; each moves to its next place, in one step with its status.
--
-- KEYS[1] prefix            reads  run, edited, spec, status
--                           writes inflight, run, edited, due:<queue>, urgent:<queue>, parked, status, counts,
--                           stats:<n>, sites:<n>, totals, errors
-- ARGV    now in ms ('' = server clock), now by the worker's belief ('' = the same), claim token,
--         stats slice length in ms, stats lifetime in s,
--         queue of the steady targets, number of steady targets, number of all targets n,
--         then n times, the steady targets first: id, next instant in ms (after u: urgent, after p: parked),
--         status ('' = keep);
--         then the number of error texts, these texts,
--         and pairs: counter, increment (see `count` in prelude.lua)
-- Returns pairs of an id that did not move and the reason: stale (another claim has the target) or gone (removed).
--
-- A steady target was well and is well: its mark is the same and it waits for its next slot, so nothing else is read.
-- While targets in flight were edited or the clock was stepped, no target counts as steady: an edited target
-- is due when `place` said, so that the edit takes effect, and next instants follow the clock.
local now = clock(ARGV[1])
local step = ARGV[2] ~= '' and now - ARGV[2] or 0
if math.abs(step) < 30000 then step = 0 end -- the worker may also have waited for a server that stood still
local head, steady_queue, steady, n = ARGV[3] .. '|', ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local FIRST = 9
local edited = redis.call('EXISTS', p .. 'edited') == 1
if edited or step ~= 0 then steady = 0 end

local ids, runs, leaving, refused, statuses, counts = {}, {}, {}, {}, {}, {}

local function refuse(id, reason)
  refused[#refused + 1] = id
  refused[#refused + 1] = reason
end

-- Whether the i-th target is in flight under this token; its run then ends below.
local function leaves(i)
  local run = runs[i]
  if run and string.sub(run, 1, #head) == head then
    leaving[#leaving + 1] = ids[i]
    return true
  end
  refuse(ids[i], 'stale')
end

local function move_steady()
  local due, k = {}, 0
  for i = 1, steady do
    if leaves(i) then
      local id, at = ids[i], FIRST + 3 * (i - 1)
      due[k + 1], due[k + 2] = ARGV[at + 1], id
      statuses[k + 1], statuses[k + 2] = id, ARGV[at + 2]
      k = k + 2
    end
  end
  if k > 0 then redis.call('ZADD', p .. 'due:' .. steady_queue, unpack(due)) end
end

local function store_status(id, status, before)
  statuses[#statuses + 1] = id
  statuses[#statuses + 1] = status
  local new, old = mark_of(status), before and mark_of(before)
  if new ~= old then
    counts[new] = (counts[new] or 0) + 1
    if old then counts[old] = (counts[old] or 0) - 1 end
  end
end

local function move_others()
  local others = {unpack(ids, steady + 1)}
  local specs = redis.call('HMGET', p .. 'spec', unpack(others))
  local before = redis.call('HMGET', p .. 'status', unpack(others))
  local edits = edited and redis.call('HMGET', p .. 'edited', unpack(others)) or {}
  local places = {}

  local function put(id, queue, letter, instant)
    local name = letter == 'p' and 'parked' or (letter == 'u' and 'urgent:' or 'due:') .. queue
    local place = places[name] or {}
    places[name] = place
    place[#place + 1] = instant
    place[#place + 1] = id
  end

  for j, id in ipairs(others) do
    local queue = queue_in(specs[j])
    if leaves(steady + j) then
      local at = FIRST + 3 * (steady + j - 1)
      local letter, instant = string.match(ARGV[at + 1], '^(%a?)(.*)$')
      if step ~= 0 then instant = string.format('%d', instant + step) end
      if edits[j] then letter, instant = '', tonumber(edits[j]) and edits[j] or now end
      if not queue then
        refuse(id, 'gone')
      else
        put(id, queue, letter, instant)
        if ARGV[at + 2] ~= '' then store_status(id, ARGV[at + 2], before[j]) end
      end
    end
  end
  for name, place in pairs(places) do redis.call('ZADD', p .. name, unpack(place)) end
end

if n > 0 then
  for i = 1, n do ids[i] = ARGV[FIRST + 3 * (i - 1)] end
  runs = redis.call('HMGET', p .. 'run', unpack(ids))
  move_steady()
  if steady < n then move_others() end
  if #leaving > 0 then
    redis.call('ZREM', p .. 'inflight', unpack(leaving))
    redis.call('HDEL', p .. 'run', unpack(leaving))
    if edited then redis.call('HDEL', p .. 'edited', unpack(leaving)) end
  end
  if #statuses > 0 then redis.call('HSET', p .. 'status', unpack(statuses)) end
end
for mark, change in pairs(counts) do add(p .. 'counts', mark, change) end
if n > 0 and #leaving == 0 then return refused end -- a call that is repeated after a lost reply counts once

local at = FIRST + 3 * n
local texts = tonumber(ARGV[at])
if texts > 0 then
  redis.call('LPUSH', p .. 'errors', unpack(ARGV, at + 1, at + texts))
  redis.call('LTRIM', p .. 'errors', 0, 99)
end
count(now, ARGV[4], ARGV[5], at + texts + 1)
return refused
