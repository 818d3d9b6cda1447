"""What is kept of a poll: its run, the target's status, events, and the overview people see first."""
