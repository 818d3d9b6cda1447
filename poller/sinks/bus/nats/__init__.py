"""The `nats` sink. Only this package imports nats-py, which is an extra."""

from poller import errors

try:
    from poller.sinks.bus.nats.nats_sink import NatsSink
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "nats":
        raise
    raise errors.ConfigError(
        "the nats sink needs nats-py, which is not installed", hint="pip install 'poller[nats]'"
    ) from None

__all__ = ["NatsSink"]
