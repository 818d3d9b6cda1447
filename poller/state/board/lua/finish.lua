-- finish: a worker is done with targets; each moves to its next place, in one step with its status.
--
-- KEYS[1] prefix            reads  run, edited, spec, status, opened, dark
--                           writes inflight, run, edited, due:<queue>, urgent:<queue>, parked, status, counts, unwell,
--                           stats:<n>, sites:<n>, times:<n>, totals, poll_totals,
--                           errors, down, troubled, events, marks, alert_news
-- ARGV    now in ms ('' = server clock), now by the worker's belief ('' = the same), claim token,
--         stats slice length in ms, stats lifetime in s,
--         queue of the steady targets, number of steady targets, number of all targets n,
--         then n times, the steady targets first: id, next instant in ms (after u: urgent, after p: parked),
--         status ('' = keep);
--         then the number of error texts, these texts,
--         the number of reports, the length of the stream of events, then for each report: id, device id, site,
--         ids of the device's other targets with commas, and four events as JSON lists ('' = none): down, up,
--         failing, recovered;
--         the number of targets whose marks changed, then for each: id, marks ('' = none), 1 if that is news;
--         and pairs: counter, increment (see `count` in prelude.lua)
-- Returns pairs of an id that did not move and the reason: stale (another claim has the target) or gone (removed);
--         and pairs of a report's number and the name of an event that was published.
--
-- A change of `down`, `troubled` or the marks that is told is news for the keeper of alerts. The marks of a target that
-- did not move stay as they are.
--
-- A report is about a target that fails, or did. A device is down when a failure without a response is confirmed and
-- no other target of the device responds. `down` and `troubled` hold what was told. So each change is told once,
-- whichever workers poll the targets of the device, and a repeated call tells nothing. The outage of a dark site is
-- told once for all: a device that stays silent is told when its site is back.
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
local well, unwell = {}, {} -- targets that recovered; scores and targets of `unwell`
local marks, published = {}, {} -- of targets whose status was stored; of reports

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
  marks[id] = new
  if new ~= WELL then
    unwell[#unwell + 1] = last_good(status)
    unwell[#unwell + 1] = id
  elseif old ~= WELL then
    well[#well + 1] = id
  end
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
  if #well > 0 then redis.call('ZREM', p .. 'unwell', unpack(well)) end
  if #unwell > 0 then redis.call('ZADD', p .. 'unwell', unpack(unwell)) end
end
for mark, change in pairs(counts) do add(p .. 'counts', mark, change) end
if n > 0 and #leaving == 0 then return {refused, published} end -- a call that is repeated after a lost reply counts once

local at = FIRST + 3 * n
local texts = tonumber(ARGV[at])
if texts > 0 then
  redis.call('LPUSH', p .. 'errors', unpack(ARGV, at + 1, at + texts))
  redis.call('LTRIM', p .. 'errors', 0, 99)
end

-- Whether a target will soon show if its device responds. A target that is due later is due now.
local function shows_soon(id)
  local queue = queue_of(id)
  if not queue then return false end
  if redis.call('ZSCORE', p .. 'inflight', id) then return true end
  if opened_until(redis.call('HGET', p .. 'opened', id)) > tonumber(now) then return false end
  local due = redis.call('ZSCORE', p .. 'due:' .. queue, id)
  if due and tonumber(due) > tonumber(now) then
    redis.call('ZADD', p .. 'due:' .. queue, now, id)
    return true
  end
  local slot = tonumber(due or redis.call('ZSCORE', p .. 'urgent:' .. queue, id) or 0)
  return slot > 0 and slot <= tonumber(now) and (slot < 1000 or now - slot < 60000)
end

-- What the targets of a device show together: 'down', 'responds', or nil while that is open.
-- A target shows that its device responds if it had a response since the confirmed silence of another one began.
local function device_state(members)
  local silent_since, others = 0, {}
  for i, status in ipairs(redis.call('HMGET', p .. 'status', unpack(members))) do
    local mark, since, finished, ok = string.match(status or '', '^(%a+)%[(%d+),%d+,(%d+),(%d+),')
    if mark then
      local silent = string.find(mark, 's', 2, true)
      if silent and string.find(mark, 'C', 2, true) then
        silent_since = math.max(silent_since, tonumber(since))
      else
        local answered = not silent and not string.find(mark, 'x', 2, true)
        others[#others + 1] = {members[i], tonumber(answered and finished or ok), answered, silent}
      end
    end
  end
  if silent_since == 0 then return nil end

  local open = false
  for _, other in ipairs(others) do
    local id, response, answered, silent = unpack(other)
    if response >= silent_since then
      if answered or not silent and now - response < 300000 then return 'responds' end
      if silent then open = true end -- its silence is not confirmed
    elseif answered and shows_soon(id) then
      open = true
    end
  end
  if open then return nil end
  return 'down'
end

local function report(number, at, events_length)
  local id, device, site, siblings = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local mark = marks[id]
  if not mark then return end
  local failing, confirmed = string.sub(mark, 1, 1) == 'f', string.find(mark, 'C', 2, true)

  local function publish(name, text)
    add_news(now, (name == 'down' or name == 'up') and 'd' .. device or 't' .. id)
    if text == '' then return end
    redis.call('XADD', p .. 'events', 'MAXLEN', '~', events_length, '*', unpack(cjson.decode(text)))
    published[#published + 1] = tostring(number)
    published[#published + 1] = name
  end

  if failing and string.find(mark, 's', 2, true) then
    if redis.call('HEXISTS', p .. 'dark', site) == 1 then return end
    local members = {id}
    for sibling in string.gmatch(siblings, '%d+') do members[#members + 1] = sibling end
    local state = device_state(members)
    if state == 'down' and redis.call('HEXISTS', p .. 'down', device) == 0 then
      redis.call('HSET', p .. 'down', device, now .. '|' .. table.concat(members, ','))
      publish('down', ARGV[at + 4])
    end
    if state ~= 'responds' then return end
    -- A sibling that was not waited for, such as one opened by hand, was well all the time and makes no report.
    if redis.call('HDEL', p .. 'down', device) == 1 then publish('up', ARGV[at + 5]) end
  elseif not (failing and string.find(mark, 'x', 2, true)) then
    if redis.call('HDEL', p .. 'down', device) == 1 then publish('up', ARGV[at + 5]) end
  end

  if failing and confirmed then
    if redis.call('SADD', p .. 'troubled', id) == 1 then publish('failing', ARGV[at + 6]) end
  elseif not failing then
    if redis.call('SREM', p .. 'troubled', id) == 1 then publish('recovered', ARGV[at + 7]) end
  end
end

at = at + texts + 1
local reports = tonumber(ARGV[at])
for number = 1, reports do report(number, at + 2 + 8 * (number - 1), ARGV[at + 1]) end

local function store_marks(id, text, is_news)
  for i = 1, #refused, 2 do
    if refused[i] == id then return end
  end
  if text == '' then
    redis.call('HDEL', p .. 'marks', id)
  else
    redis.call('HSET', p .. 'marks', id, text)
  end
  if is_news == '1' then add_news(now, 't' .. id) end
end

at = at + 2 + 8 * reports
local marked = tonumber(ARGV[at])
for i = at + 1, at + 3 * marked, 3 do store_marks(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
count(now, ARGV[4], ARGV[5], at + 1 + 3 * marked)
return {refused, published}
