"""Options of a store that is reached by TLS, and the files of any sink that hold a secret."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from poller import errors

_MAX_SECRET_BYTES = 64 * 1024


def absolute(path: Path | None) -> Path | None:
    """Return the path of an option. Raises ValueError for a relative one."""
    if path is not None and not path.is_absolute():
        raise ValueError("a path of a file begins with /")
    return path


OptionalFile = Annotated[Path | None, AfterValidator(absolute)]


class TlsOptions(BaseModel):
    """Options about certificates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca_file: OptionalFile = Field(
        None, description="PEM file of the CA that signed the store's certificate."
    )
    cert_file: OptionalFile = Field(None, description="PEM file of the client certificate.")
    key_file: OptionalFile = Field(None, description="PEM file of its key, if not in `cert_file`.")
    insecure: bool = Field(False, description="Accept any certificate of the store.")

    @model_validator(mode="after")
    def _check_certificates(self) -> Self:
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs cert_file")
        if self.insecure and self.ca_file:
            raise ValueError("ca_file and insecure contradict each other: give one")
        return self

    def context(self, sink: str) -> ssl.SSLContext:
        """Return a new TLS context. Raises InvalidSetting for a file that cannot be used."""
        context = ssl.create_default_context()
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.ca_file:
            try:
                context = ssl.create_default_context(cafile=self.ca_file)
            except OSError as error:  # SSLError is one
                raise unusable(sink, "ca_file", self.ca_file, error) from None
        if self.cert_file:
            try:
                # An empty password: OpenSSL would ask the terminal for that of an encrypted key.
                context.load_cert_chain(self.cert_file, self.key_file, password="")
            except OSError as error:
                raise unusable(sink, "cert_file", self.cert_file, error) from None
        return context


def read_secret(sink: str, field: str, path: Path) -> str:
    """Return the one line of a secret file. Raises InvalidSetting, without its content."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SECRET_BYTES)
    except OSError as error:
        raise unusable(sink, field, path, error) from None
    text = content.decode("utf-8", errors="replace").strip()
    if not text or not text.isprintable():
        raise unusable(sink, field, path, ValueError("it is empty, or has more than one line"))
    return text


def readable(sink: str, field: str, path: Path) -> None:
    """Check that a file can be opened. Raises InvalidSetting."""
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise unusable(sink, field, path, error) from None


def unusable(sink: str, field: str, path: Path, error: Exception) -> errors.InvalidSetting:
    """Return the error of a file that an option names."""
    return errors.InvalidSetting(
        f'sink "{sink}": {field} "{path}" cannot be used',
        cause=getattr(error, "strerror", None) or str(error),
        hint="the file must be readable by the user that runs the worker",
    )
