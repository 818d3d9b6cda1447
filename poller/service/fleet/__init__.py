"""The fleet as pages and terminals show it: lists of devices, causes of failure, sites."""
