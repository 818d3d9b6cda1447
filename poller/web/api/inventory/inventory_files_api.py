"""`/api/v1/imports` and `/api/v1/export`: the inventory as a CSV, JSON or YAML file."""

from __future__ import annotations

import asyncio
import io
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO, Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.service.inventory import inventory_export, inventory_import
from poller.service.inventory.inventory_import import ImportFile
from poller.service.inventory_forms import file_forms, value_limits
from poller.service.inventory_forms.file_forms import Form
from poller.web.api.contract import problems, resources
from poller.web.api.contract.needs import Editing, Reading
from poller.web.api.inventory import inventory_bodies
from poller.web.api.inventory.inventory_bodies import CreatedSite

router = resources.router("imports")
export_router = resources.router("export")

_FORMS: dict[str, Form] = {
    "text/csv": "csv",
    "application/json": "json",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "text/yaml": "yaml",
}
MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "yaml": "application/yaml",
}
_FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}
_CHUNK_BYTES = 262_144
#: An export up to this size stays in memory, a larger one is written to a temporary file.
_BYTES_IN_MEMORY = 4_194_304
#: Files that are received at the same time, and the time for each of them.
MOST_BODIES = 8
BODY_S = 120.0
_receiving = threading.BoundedSemaphore(MOST_BODIES)
#: One import at a time: a file takes many times its size of memory.
_importing = threading.Lock()


class ImportBody(BaseModel):
    """The result of an import, or of its dry run."""

    dry_run: bool
    added: int = Field(description="New devices.")
    updated: int
    unchanged: int
    targets_added: int
    targets_updated: int
    targets_unchanged: int
    new_sites: list[CreatedSite]
    notes: list[str] = Field(description="What is risky about the targets of the file.")


@router.post("", responses=problems.CHANGING, openapi_extra=_FILE_BODY)
async def import_devices(
    call: Editing,
    request: Request,
    update: Annotated[bool, Query(description="Change devices that exist already.")] = False,
    dry_run: Annotated[bool, Query(description="Check everything, change nothing.")] = False,
    collector: Annotated[
        str | None,
        Query(
            max_length=200,
            description="The collector of new devices if the file names no targets; empty: none.",
        ),
    ] = None,
) -> ImportBody:
    """Add a whole file of devices and targets: all of it or, naming every bad line, nothing.

    The header Content-Type tells the form: text/csv, application/json or application/yaml.
    """
    form = _form(request)
    content = await _received(request)
    with one_import():
        file_forms.refuse_many_rows(content, form, value_limits.MAX_REQUEST_ROWS)
        file = ImportFile(content, form, "file", update, dry_run, collector)
        done = await run_in_threadpool(
            inventory_import.import_file, call.services, call.author, file
        )
    created = inventory_bodies.created_sites(done.new_sites)
    return ImportBody(
        dry_run=dry_run, **asdict(done.counts), new_sites=created, notes=list(done.notes)
    )


@contextmanager
def one_import() -> Iterator[None]:
    """Keep other imports of this process out. Raises AlreadyRunning while one runs."""
    if not _importing.acquire(blocking=False):
        raise errors.AlreadyRunning("another import runs", hint="send it again later")
    try:
        yield
    finally:
        _importing.release()


async def _received(request: Request) -> bytes:
    """The whole body. Raises AlreadyRunning, InvalidInput for one that takes too long.

    A slow sender keeps nobody from importing; the number of bodies bounds the memory.
    """
    if not _receiving.acquire(blocking=False):
        raise errors.AlreadyRunning(
            f"{MOST_BODIES} files are being received already", hint="send it again later"
        )
    try:
        async with asyncio.timeout(BODY_S):
            return await request.body()
    except TimeoutError:
        raise errors.InvalidInput(
            f"the file did not arrive within {BODY_S:.0f} s", hint="send it in smaller files"
        ) from None
    finally:
        _receiving.release()


def _form(request: Request) -> Form:
    """The form of the body by its Content-Type. Raises InvalidInput."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _FORMS:
        raise errors.InvalidInput(
            "Content-Type: this is no form of an inventory file",
            hint="send text/csv, application/json or application/yaml",
        )
    return _FORMS[media_type]


@export_router.get(
    "",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}, "application/json": {}, "application/yaml": {}}}},
)
def export_devices(
    call: Reading,
    form: Annotated[Literal["csv", "json", "yaml"], Query(alias="format")] = "csv",
    raw: Annotated[
        bool,
        Query(description="CSV for programs: no apostrophe before what a spreadsheet calculates."),
    ] = False,
) -> StreamingResponse:
    """Write all devices and targets in a form that an import reads.

    The inventory is read in one piece before the first byte is sent, so a slow reader holds no
    transaction.
    """
    file = tempfile.SpooledTemporaryFile(_BYTES_IN_MEMORY)  # noqa: SIM115  closed after the response
    try:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        inventory_export.write(call.services, call.actor, text, form, raw)
        text.detach()
    except BaseException:
        file.close()
        raise
    file.seek(0)
    disposition = {"Content-Disposition": f'attachment; filename="inventory.{form}"'}
    closing = BackgroundTask(file.close)
    media_type = MEDIA_TYPES[form]
    return StreamingResponse(_chunks(file), 200, disposition, media_type, closing)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk
