"""What people store: names, durations, sizes, drafts of devices and targets, and the checks of each field."""
