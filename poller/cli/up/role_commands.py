"""The processes of a one-machine cluster: the very commands one would type, one after another."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping

from poller import errors
from poller.cli.up.process_supervisor import Role

#: How many ports behind the preferred one are tried before any port will do.
NEAR = 20

_CELERY = (sys.executable, "-m", "celery", "-A", "poller", "--quiet")


def beat(env: Mapping[str, str]) -> Role:
    return Role("beat", [*_CELERY, "beat"], env)


def worker(
    number: int,
    env: Mapping[str, str],
    name: str = "worker",
    concurrency: int | None = None,
    memory_bytes: int = 0,
) -> Role:
    calm = {**env, "PYTHONWARNINGS": "ignore:You're running the worker with superuser"}
    argv = [
        *_CELERY,
        "worker",
        "-n",
        f"{name}{number}@%h",
        *([f"--concurrency={concurrency}"] if concurrency else []),
    ]
    return Role(f"{name}{number}", argv, calm, memory_bytes=memory_bytes)


def web(env: Mapping[str, str], port: int) -> Role:
    return Role(
        "web", [sys.executable, "-m", "poller", "web"], {**env, "POLLER_WEB_PORT": str(port)}
    )


def flower(env: Mapping[str, str], port: int) -> Role:
    return Role(
        "flower",
        [sys.executable, "-m", "poller", "flower"],
        {**env, "POLLER_FLOWER_PORT": str(port)},
    )


def traps(env: Mapping[str, str]) -> Role:
    return Role("traps", [sys.executable, "-m", "poller", "traps"], env)


def simulator(env: Mapping[str, str], devices: int, snmp_port: int, routeros_port: int) -> Role:
    arguments = [
        f"--devices={devices}",
        f"--snmp-port={snmp_port}",
        f"--routeros-port={routeros_port}",
    ]
    return Role("sim", [sys.executable, "-m", "poller", "sim", *arguments], env)


def choose_port(
    setting: str, configured: int | None, preferred: int, bind: str, say: Callable[[str], None]
) -> int:
    """The configured port, or an error naming it; else the preferred one or, saying so, the next that is free."""
    if configured:
        if not is_free(bind, configured):
            raise errors.PortInUse(
                f"{setting}: {bind}:{configured} is in use",
                hint=f"set POLLER_{setting.upper()} to another port",
            )
        return configured
    if configured == 0:
        return free_port(bind)
    near = range(preferred, preferred + NEAR)
    port = next((port for port in near if is_free(bind, port)), None) or free_port(bind)
    if port != preferred:
        say(f"{preferred} is in use, took {port}; POLLER_{setting.upper()} chooses another")
    return port


def free_port(bind: str = "127.0.0.1", kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(_family(bind), kind) as probe:
        probe.bind((bind, 0))
        return int(probe.getsockname()[1])


def is_free(bind: str, port: int, kind: int = socket.SOCK_STREAM) -> bool:
    with socket.socket(_family(bind), kind) as probe:
        if kind == socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((bind, port))
        except OSError:
            return False
        return True


def _family(bind: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in bind else socket.AF_INET
