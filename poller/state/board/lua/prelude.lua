-- prelude: functions that the scripts share. lua_scripts.py puts this text in front of every script.
--
-- KEYS[1] is the prefix of all keys. The records on the board, see also record_formats.py:
--   spec     version|interval|timeout|queue     of an enabled target; times in ms
--   run      token|plan|attempts|call           of a target in flight; plan in ms
--   opened   until|since|operator               of a breaker that is opened by hand; times in ms; then the reason
--   status   mark and JSON                      of an enabled target; the mark consists of letters
local p = KEYS[1]
local NOT_LEADER = {'NOTLEADER'}

-- Whether this token leads; '' stands for a board without election.
local function leads(token)
  return token == '' or redis.call('GET', p .. 'redbeat::lock') == token
end

-- The instant in ms as text; '' stands for the server's clock.
local function clock(now)
  if now ~= '' then return now end
  local time = redis.call('TIME')
  return string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
end

-- Whether the clock was set since the leader read it: the instant that it believes is now differs too much from the
-- server's clock. '' stands for any difference.
local function was_set(believed, difference)
  return difference ~= '' and math.abs(clock('') - believed) > tonumber(difference)
end

-- Returns version, interval, timeout, queue as text; nil for a spec that is missing or damaged.
local function parse_spec(spec)
  return string.match(spec or '', '^(%d+)|(%d+)|(%d+)|(.+)$')
end

-- The queue alone, which nearly all scripts need: one capture costs less than four.
local function queue_in(spec)
  return string.match(spec or '', '^%d+|%d+|%d+|(.+)$')
end

local function queue_of(id)
  return queue_in(redis.call('HGET', p .. 'spec', id))
end

-- Polls that a target of this interval needs, in millionths per second. Never 0, see update_queues.lua.
local function polls_needed(interval)
  return math.max(1, math.floor(1e9 / interval))
end

-- The instant until which an operator keeps a breaker open; 0 without a readable record.
local function opened_until(record)
  return tonumber(string.match(record or '', '^(%d+)|') or 0)
end

local function mark_of(status)
  return string.match(status, '^%a+')
end

-- The letter of a target that is well, see target_status.py. `unwell` holds all others.
local WELL = 'o'

-- The end of the last good poll in a status, in ms; 0 for a target that was never well.
local function last_good(status)
  return string.match(status, '^%a+%[%d+,%d+,%d+,(%d+)') or 0
end

-- Brings `unwell` up to a stored status.
local function index_status(id, status)
  if mark_of(status) == WELL then
    redis.call('ZREM', p .. 'unwell', id)
  else
    redis.call('ZADD', p .. 'unwell', last_good(status), id)
  end
end

-- Tells the keeper of alerts that something changed: 't' and a target id, or 'd' and a device id.
local function add_news(now, member)
  redis.call('ZADD', p .. 'alert_news', now, member)
end

-- Removes the marks of a target that leaves the board.
local function forget_marks(now, id)
  if redis.call('HDEL', p .. 'marks', id) == 1 then add_news(now, 't' .. id) end
end

-- A score below 1000 is no instant: an operator demands a poll at once.
local function is_demanded(score)
  return score and tonumber(score) < 1000
end

-- Removes a target from the waiting places of a queue. Returns whether it waited there.
local function stop_waiting(id, queue)
  local due = redis.call('ZREM', p .. 'due:' .. queue, id)
  local urgent = redis.call('ZREM', p .. 'urgent:' .. queue, id)
  return due + urgent > 0
end

-- Moves a waiting, parked or held target to urgent.
local function make_urgent(id, queue, score)
  redis.call('ZREM', p .. 'parked', id)
  redis.call('ZREM', p .. 'due:' .. queue, id)
  if redis.call('ZREM', p .. 'held', id) == 1 then redis.call('SADD', p .. 'released', id) end
  redis.call('ZADD', p .. 'urgent:' .. queue, score, id)
end

-- Ends the runs of targets. The caller puts the targets into another place, or they are gone.
local function end_runs(...)
  redis.call('ZREM', p .. 'inflight', ...)
  redis.call('HDEL', p .. 'run', ...)
  redis.call('HDEL', p .. 'edited', ...)
end

-- Adds to a sum. A sum that another program damaged starts again: it must not stop a move halfway.
local function add(hash, field, change)
  local sum = redis.pcall('HINCRBY', hash, field, change)
  if type(sum) == 'table' then redis.call('HSET', hash, field, change) end
end

-- Adds the pairs (counter, increment) of ARGV from this position on to the statistics and the totals.
-- 'lmax' is a maximum; a name 's:...' belongs to the statistics of sites, 'd:...' to the times of queues, and 'p:...' to
-- the totals of polls by collector.
local function count(now, slice_ms, lifetime_s, position)
  if position > #ARGV then return end
  local slice = string.format('%d', math.floor(now / slice_ms))
  local stats, sites, times = p .. 'stats:' .. slice, p .. 'sites:' .. slice, p .. 'times:' .. slice
  for i = position, #ARGV, 2 do
    local name, increment = ARGV[i], ARGV[i + 1]
    if string.sub(name, 1, 2) == 's:' then
      add(sites, string.sub(name, 3), increment)
    elseif string.sub(name, 1, 2) == 'd:' then
      add(times, string.sub(name, 3), increment)
    elseif string.sub(name, 1, 2) == 'p:' then
      add(p .. 'poll_totals', string.sub(name, 3), increment)
    elseif name == 'lmax' then
      local maximum = tonumber(redis.call('HGET', stats, 'lmax') or 0) or 0
      if maximum < tonumber(increment) then redis.call('HSET', stats, 'lmax', increment) end
    else
      add(stats, name, increment)
      add(p .. 'totals', name, increment)
    end
  end
  redis.call('EXPIRE', stats, lifetime_s)
  redis.call('EXPIRE', sites, 300)
  redis.call('EXPIRE', times, 300)
end

