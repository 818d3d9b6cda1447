"""Sinks that publish a message for every poll: a Redis stream, NATS, Kafka."""
