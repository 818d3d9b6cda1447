-- respread: due targets get another instant. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock      writes  due:<queue>
-- ARGV    leader token ('' = no election), queue, then triples: id, current score, new score
-- Returns {'NOTLEADER'} or the number of moved targets. A target that moved meanwhile stays where it is.
if not leads(ARGV[1]) then return NOT_LEADER end
local due, moved = p .. 'due:' .. ARGV[2], 0
for i = 3, #ARGV, 3 do
  local score = redis.call('ZSCORE', due, ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    redis.call('ZADD', due, ARGV[i + 2], ARGV[i])
    moved = moved + 1
  end
end
return moved
