"""Jobs: periodic work that is not a poll. Which plans to attempt, and how a run may end."""
