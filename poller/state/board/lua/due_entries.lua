-- due_entries: read RedBeat's entries that are due, with the records of jobs, in one round trip.
--
-- KEYS[1] prefix            reads  redbeat::schedule, redbeat:job:*
-- ARGV    the database's clock for jobs ('' if it is not known), this host's clock for other entries, both in seconds;
--         the largest number of entries
-- Returns {{key, job, meta, ...} of due jobs, {key, ...} of other due entries, the next instant of an entry or ''}.
-- A record that is missing or of a wrong type is ''.
local schedule, job_prefix = p .. 'redbeat::schedule', p .. 'redbeat:job:'
local job_now, other_now = tonumber(ARGV[1]), tonumber(ARGV[2])
local latest = math.max(job_now or 0, other_now)

local jobs, others = {}, {}
local due = redis.call('ZRANGEBYSCORE', schedule, 0, string.format('%.3f', latest), 'WITHSCORES', 'LIMIT', 0, ARGV[3])
for i = 1, #due, 2 do
  local key, score = due[i], tonumber(due[i + 1])
  if string.sub(key, 1, #job_prefix) ~= job_prefix then
    if score <= other_now then table.insert(others, key) end
  elseif job_now and score <= job_now then
    local record = redis.pcall('HMGET', key, 'job', 'meta')
    table.insert(jobs, key)
    table.insert(jobs, record[1] or '')
    table.insert(jobs, record[2] or '')
  end
end

local from = '(' .. string.format('%.3f', job_now or other_now)
local coming = redis.call('ZRANGEBYSCORE', schedule, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {jobs, others, coming[2] or ''}
