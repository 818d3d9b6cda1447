"""The parts of judging a poll by metric rules. `judgement.py` puts them together."""
