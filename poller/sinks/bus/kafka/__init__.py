"""The `kafka` sink. Only this package imports confluent-kafka, which is an extra."""

from poller import errors

try:
    from poller.sinks.bus.kafka.kafka_sink import KafkaSink
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "confluent_kafka":
        raise
    raise errors.ConfigError(
        "the kafka sink needs confluent-kafka, which is not installed",
        hint="pip install 'poller[kafka]'",
    ) from None

__all__ = ["KafkaSink"]
