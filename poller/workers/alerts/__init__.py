"""Metric rules, judged where a poll ends: from the readings at hand, before `finish`."""
