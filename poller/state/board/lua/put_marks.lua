-- put_marks: bring back marks that Redis lost; a mark that is there stays as it is. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock, spec      writes  marks
-- ARGV    leader token ('' = no election), then for each target: id, number of marks, each mark as a JSON list
-- Returns {'NOTLEADER'} or the number of targets that got a mark. A target that is not on the board gets none.
--
-- The texts are joined as texts: decoding and encoding again could change a number.
if not leads(ARGV[1]) then return NOT_LEADER end

local function rows_of(text)
  local decoded, rows = pcall(cjson.decode, text)
  return decoded and type(rows) == 'table' and rows or {}
end

-- Returns the stored text with the marks that it lacks, or nil if it lacks none.
local function joined(stored, texts)
  local known, parts = {}, {}
  for _, row in ipairs(rows_of(stored)) do known[row[1] .. '|' .. row[2]] = true end
  for _, text in ipairs(texts) do
    local row = rows_of(text)
    if row[2] and not known[row[1] .. '|' .. row[2]] then parts[#parts + 1] = text end
  end
  if #parts == 0 then return nil end
  local before = next(known) and string.sub(stored, 2, -2) .. ',' or ''
  return '[' .. before .. table.concat(parts, ',') .. ']'
end

local changed, at = 0, 2
while at <= #ARGV do
  local id, count = ARGV[at], tonumber(ARGV[at + 1])
  local texts = {unpack(ARGV, at + 2, at + 1 + count)}
  at = at + 2 + count
  if redis.call('HEXISTS', p .. 'spec', id) == 1 then
    local text = joined(redis.call('HGET', p .. 'marks', id) or '', texts)
    if text then
      redis.call('HSET', p .. 'marks', id, text)
      changed = changed + 1
    end
  end
end
return changed
