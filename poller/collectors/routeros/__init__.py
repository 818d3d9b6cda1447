"""The RouterOS collector, on librouteros (GPL-2.0-or-later, hence an extra): nothing else of ours imports that."""

from poller import errors

try:
    from poller.collectors.routeros.collector import RouterOsCollector
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "librouteros":
        raise
    raise errors.ConfigError(
        "the routeros collector needs librouteros, which is not installed",
        hint="pip install 'poller[routeros]'",
    ) from None

__all__ = ["RouterOsCollector"]
