"""The processes of a one-machine cluster, each the command a person would type."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from poller.cli.up.process_supervisor import Role

_CELERY = (sys.executable, "-m", "celery", "-A", "poller", "--quiet")
_POLLER = (sys.executable, "-m", "poller")
_ROOT_WARNING = "ignore:You're running the worker with superuser"


def beat(env: Mapping[str, str]) -> Role:
    return Role("beat", [*_CELERY, "beat"], env)


def worker(
    number: int,
    env: Mapping[str, str],
    name: str = "worker",
    concurrency: int | None = None,
    memory_bytes: int = 0,
) -> Role:
    argv = [*_CELERY, "worker", "-n", f"{name}{number}@%h"]
    if concurrency:
        argv.append(f"--concurrency={concurrency}")

    return Role(
        name=f"{name}{number}",
        argv=argv,
        env={**env, "PYTHONWARNINGS": _ROOT_WARNING},
        memory_bytes=memory_bytes,
    )


def web(env: Mapping[str, str], port: int) -> Role:
    return Role("web", [*_POLLER, "web"], {**env, "POLLER_WEB_PORT": str(port)})


def flower(env: Mapping[str, str], port: int) -> Role:
    return Role("flower", [*_POLLER, "flower"], {**env, "POLLER_FLOWER_PORT": str(port)})


def traps(env: Mapping[str, str]) -> Role:
    return Role("traps", [*_POLLER, "traps"], env)


def simulator(
    env: Mapping[str, str], devices: int, snmp_port: int, routeros_port: int, tls_port: int
) -> Role:
    argv = [
        *_POLLER,
        "sim",
        f"--devices={devices}",
        f"--snmp-port={snmp_port}",
        f"--routeros-port={routeros_port}",
        f"--tls-port={tls_port}",
    ]
    return Role("sim", argv, env, quiet=True)
