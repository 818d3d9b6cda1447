"""The options of both collectors; `parts` differs. Checked when a target is saved."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from poller.collectors import api

_SHA256 = re.compile(r"[0-9a-f]{64}")


class _Connection(api.Options):
    ca_file: Annotated[
        str,
        Field(
            description="PEM file on the worker; Proxmox keeps its own CA in /etc/pve/pve-root-ca.pem"
        ),
    ] = ""
    fingerprint: Annotated[
        str,
        Field(
            description="SHA-256 of the server's certificate, as Proxmox shows it: no other will do"
        ),
    ] = ""
    insecure: Annotated[
        bool, Field(description="Accept any certificate. The token goes to whoever answers")
    ] = False

    @field_validator("fingerprint")
    @classmethod
    def _is_fingerprint(cls, text: str) -> str:
        plain = text.replace(":", "").strip().lower()
        if plain and not _SHA256.fullmatch(plain):
            raise ValueError("a SHA-256 fingerprint has 32 bytes: AA:BB:CC:...")
        return plain

    @field_validator("ca_file")
    @classmethod
    def _whole_path(cls, path: str) -> str:
        return os.path.abspath(os.path.expanduser(path)) if path else ""

    @model_validator(mode="after")
    def _one_kind_of_trust(self) -> Self:
        if sum(map(bool, (self.ca_file, self.fingerprint, self.insecure))) > 1:
            raise ValueError("ca_file, fingerprint and insecure contradict each other: give one")
        return self


def _split(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


class VeOptions(_Connection):
    port: Annotated[int, Field(ge=1, le=65535, description="TCP port of the API")] = 8006
    parts: Annotated[
        tuple[Literal["cluster", "nodes", "guests", "storage", "tasks"], ...],
        Field(min_length=1, description="What to read; a list, or names separated by commas"),
    ] = ("cluster", "nodes", "guests", "storage", "tasks")
    task_types: Annotated[
        tuple[str, ...],
        Field(description="Of which kinds of task the last one is told: vzdump is a backup"),
    ] = ("vzdump",)

    _split_lists = field_validator("parts", "task_types", mode="before")(_split)


class BackupOptions(_Connection):
    port: Annotated[int, Field(ge=1, le=65535, description="TCP port of the API")] = 8007
    parts: Annotated[
        tuple[Literal["node", "datastores", "backups", "tasks"], ...],
        Field(min_length=1, description="What to read; a list, or names separated by commas"),
    ] = ("node", "datastores", "backups", "tasks")
    task_types: Annotated[
        tuple[str, ...], Field(description="Of which kinds of task the last one is told")
    ] = (
        "garbage_collection",
        "prunejob",
        "syncjob",
        "verificationjob",
    )

    _split_lists = field_validator("parts", "task_types", mode="before")(_split)
