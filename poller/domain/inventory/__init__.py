"""What operators store: names, durations, drafts of devices and targets, with their checks."""
