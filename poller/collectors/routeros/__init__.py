"""The RouterOS collector. Only this package imports librouteros (GPL-2.0-or-later, an extra)."""

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
