"""The options of both collectors. poller validates them when a target is saved."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from poller.collectors import api

_SHA256 = re.compile(r"[0-9a-f]{64}")

Port = Annotated[int, Field(ge=1, le=65535, description="TCP port of the API")]

CaFile = Annotated[
    str,
    Field(
        description="PEM file on the worker with the CA of the server's certificate;"
        " Proxmox stores its own CA in /etc/pve/pve-root-ca.pem"
    ),
]
Fingerprint = Annotated[
    str,
    Field(description="SHA-256 of the only accepted server certificate, as Proxmox shows it"),
]
Insecure = Annotated[
    bool,
    Field(description="Accept any certificate: every server that answers receives the token"),
]
TaskTypes = Annotated[
    tuple[str, ...],
    Field(description="Types of tasks whose last end is reported"),
]

VePart = Literal["cluster", "nodes", "guests", "storage", "tasks"]
BackupPart = Literal["node", "datastores", "backups", "tasks"]

_PARTS = Field(min_length=1, description="What to read; a list, or names separated by commas")


class _ConnectionOptions(api.Options):
    ca_file: CaFile = ""
    fingerprint: Fingerprint = ""
    insecure: Insecure = False

    @field_validator("fingerprint")
    @classmethod
    def _normalize_fingerprint(cls, text: str) -> str:
        digits = text.replace(":", "").strip().lower()
        if digits and not _SHA256.fullmatch(digits):
            raise ValueError("a SHA-256 fingerprint has 32 bytes: AA:BB:CC:...")
        return digits

    @field_validator("ca_file")
    @classmethod
    def _make_path_absolute(cls, path: str) -> str:
        return os.path.abspath(os.path.expanduser(path)) if path else ""

    @model_validator(mode="after")
    def _allow_one_kind_of_trust(self) -> Self:
        kinds = (self.ca_file, self.fingerprint, self.insecure)
        if sum(map(bool, kinds)) > 1:
            raise ValueError("ca_file, fingerprint and insecure contradict each other: give one")
        return self


def _split_at_commas(value: Any) -> Any:
    """Return the names in a text such as `nodes, guests`. Any other value is left to pydantic."""
    if isinstance(value, str):
        names = (name.strip() for name in value.split(","))
        return tuple(name for name in names if name)
    return value


class VeOptions(_ConnectionOptions):
    port: Port = 8006
    parts: Annotated[tuple[VePart, ...], _PARTS] = (
        "cluster",
        "nodes",
        "guests",
        "storage",
        "tasks",
    )
    task_types: TaskTypes = ("vzdump",)

    _split_lists = field_validator("parts", "task_types", mode="before")(_split_at_commas)


class BackupOptions(_ConnectionOptions):
    port: Port = 8007
    parts: Annotated[tuple[BackupPart, ...], _PARTS] = (
        "node",
        "datastores",
        "backups",
        "tasks",
    )
    task_types: TaskTypes = (
        "garbage_collection",
        "prunejob",
        "syncjob",
        "verificationjob",
    )

    _split_lists = field_validator("parts", "task_types", mode="before")(_split_at_commas)
