"""When and where a target is polled: slots, intervals, capacity, queue routing, session affinity."""
