-- forget_news: the keeper of alerts looked at news. What changed since then stays.
--
-- KEYS[1] prefix            writes  alert_news
-- ARGV    pairs: member, its score when it was read
-- Returns the number of members that left.
local news, left = p .. 'alert_news', 0
for i = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', news, ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then left = left + redis.call('ZREM', news, ARGV[i]) end
end
return left
