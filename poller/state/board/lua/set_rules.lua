-- set_rules: tell the workers which version of the alert rules is in SQL. By the leader only.
--
-- KEYS[1] prefix            reads  redbeat::lock      writes  rules
-- ARGV    leader token ('' = no election), version
-- Returns {'NOTLEADER'} or 1.
if not leads(ARGV[1]) then return NOT_LEADER end
redis.call('SET', p .. 'rules', ARGV[2])
return 1
