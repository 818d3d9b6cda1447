"""The fleet as people look at it: searches, causes of failure, sites, slots of a day."""
