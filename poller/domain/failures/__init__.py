"""The consequences of a failure: outcome, error codes, retry, circuit breaker, dead letter,
site outage, quarantine.
"""
