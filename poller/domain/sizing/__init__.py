"""What a fleet takes: cores, memory, disk and bandwidth, from measured figures."""
