"""Settings: the model of every option, the sources it reads, and how values are shown."""

from poller.settings.fields import Settings
from poller.settings.loader import load, origins

__all__ = ["Settings", "load", "origins"]
