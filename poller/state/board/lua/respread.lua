-- respread: waiting targets get another instant. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock      writes  due:<queue>
-- ARGV    leader token ('' = no election), queue, then triples: id, score it has, score it gets
-- Returns 'NOTLEADER' or how many moved; one that moved or left meanwhile is let be.
local p = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', p .. 'redbeat::lock') ~= ARGV[1] then return 'NOTLEADER' end
local due, moved = p .. 'due:' .. ARGV[2], 0
for i = 3, #ARGV, 3 do
  local score = redis.call('ZSCORE', due, ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    redis.call('ZADD', due, ARGV[i + 2], ARGV[i])
    moved = moved + 1
  end
end
return moved
