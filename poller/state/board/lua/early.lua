-- early: the clock was set back; what waits for an instant further ahead than it may be is brought nearer. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  the place named
-- ARGV    leader token ('' = no election), now in ms, place (due:<queue>, urgent:<queue> or parked),
--         longest wait in ms ('' = each target's interval), cursor ('0' at first)
-- Returns {'NOTLEADER'} or {cursor ('0' = done), how many moved}. A target stays on its grid: it moves by whole waits.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return {'NOTLEADER'} end
local set, now = p .. ARGV[3], tonumber(ARGV[2])
local page = redis.call('ZSCAN', set, ARGV[5], 'COUNT', 500)
local moved = 0
for i = 1, #page[2], 2 do
  local id, score = page[2][i], tonumber(page[2][i + 1])
  local wait = ARGV[4]
  if wait == '' then wait = string.match(redis.call('HGET', p .. 'spec', id) or '', '^%d+|(%d+)|') or 60000 end
  local ahead = score - now - wait
  if ahead > 0 then
    redis.call('ZADD', set, string.format('%d', score - math.ceil(ahead / wait) * wait), id)
    moved = moved + 1
  end
end
return {page[1], moved}
