-- count: add to the statistics and the totals without moving a target.
--
-- KEYS[1] prefix            writes  stats:<n>, sites:<n>, times:<n>, totals, poll_totals
-- ARGV    now in ms ('' = server clock), stats slice length in ms, stats lifetime in s,
--         then pairs: counter, increment (see `count` in prelude.lua)
-- Returns 1.
count(clock(ARGV[1]), ARGV[2], ARGV[3], 4)
return 1
