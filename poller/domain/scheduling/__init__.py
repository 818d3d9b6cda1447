"""When and where a target is polled: slots, intervals, capacity, queues, session affinity."""
