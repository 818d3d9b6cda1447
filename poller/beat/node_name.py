"""The node name by which Celery's tools know a beat: one name, one process.

Celery names every beat `celerybeat@host`. Its tools warn of two nodes with the same name, and mix
up their answers.
"""

from __future__ import annotations

import os
import socket
from typing import Any

#: Bound as long as this process lives: the first beat of the host has Celery's name.
_claims: list[socket.socket] = []


def name_beat(service: Any, server: str) -> None:
    """Name a second beat of this host after its process, unless `--hostname` names it.

    `service` is Celery's, before its remote control starts; `server` is the address of Redis.
    """
    if service.hostname is None and not _is_first(server):
        service.hostname = f"celerybeat-{os.getpid()}@%h"


def _is_first(server: str) -> bool:
    """Whether no other beat of this host uses this server. The kernel ends the claim of a process
    that is gone.
    """
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0poller-beat-{server}"[:100])
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True
