"""The actor of a command line: the user of this host."""

from __future__ import annotations

import os
import pwd
import socket

from poller.domain.access.actor import Actor, ActorKind


def operator_name() -> str:
    """The user that runs this command, by the system's records rather than the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def of_command() -> Actor:
    """The actor of a command. The database's own login decides what a command may do."""
    return Actor(operator_name(), ActorKind.CLI, socket.gethostname())
