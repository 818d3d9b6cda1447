"""Counters of the cluster at earlier instants, to compare those of now with."""
