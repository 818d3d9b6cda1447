-- bring_nearer: the clock was set back; shorten waits that are too long now. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  the place named
-- ARGV    leader token ('' = no election), now in ms, place (due:<queue>, urgent:<queue> or parked),
--         longest wait in ms ('' = the interval of each target), cursor ('0' at first)
-- Returns {'NOTLEADER'} or {cursor ('0' = done), number of moved targets}
--
-- A target moves by whole waits, so it stays on its grid.
if not leads(ARGV[1]) then return NOT_LEADER end
local now, place, longest = tonumber(ARGV[2]), p .. ARGV[3], ARGV[4]

local function longest_wait(id)
  if longest ~= '' then return longest end
  local _, interval = parse_spec(redis.call('HGET', p .. 'spec', id))
  return interval or 60000
end

local page = redis.call('ZSCAN', place, ARGV[5], 'COUNT', 500)
local moved = 0
for i = 1, #page[2], 2 do
  local id, score = page[2][i], tonumber(page[2][i + 1])
  local wait = longest_wait(id)
  local excess = score - now - wait
  if excess > 0 then
    redis.call('ZADD', place, string.format('%d', score - math.ceil(excess / wait) * wait), id)
    moved = moved + 1
  end
end
return {page[1], moved}
