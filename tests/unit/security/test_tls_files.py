"""Certificate files that cannot be served are refused before the page listens."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from poller import errors
from poller.security import tls_files
from tests.integration import web_servers


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A certificate and its key."""
    web_servers.identity(tmp_path)
    return str(tmp_path / "127.0.0.1.pem"), str(tmp_path / "127.0.0.1.key")


def test_a_certificate_with_its_key_is_accepted(files: tuple[str, str]) -> None:
    """No files at all are plain HTTP."""
    tls_files.check(*files)
    tls_files.check("", "")


def test_both_files_are_needed(files: tuple[str, str]) -> None:
    """The error names the setting that is missing."""
    with pytest.raises(errors.InvalidSetting, match="web_tls_key: it is not set"):
        tls_files.check(files[0], "")
    with pytest.raises(errors.InvalidSetting, match="web_tls_cert: it is not set"):
        tls_files.check("", files[1])


def test_files_that_do_not_belong_together_are_refused(
    files: tuple[str, str], tmp_path: Path
) -> None:
    """A missing file, a foreign key, a key with a password and a text are named."""
    certificate, key = files
    with pytest.raises(errors.InvalidSetting, match=r"web_tls_cert: .* cannot be read"):
        tls_files.check(f"{certificate}x", key)
    with pytest.raises(errors.InvalidSetting, match=r"web_tls_key: .* cannot be read"):
        tls_files.check(certificate, f"{key}x")
    for content in (_key(), b"no key"):
        (tmp_path / "other.key").write_bytes(content)
        with pytest.raises(errors.InvalidSetting, match="not a certificate and its private key"):
            tls_files.check(certificate, str(tmp_path / "other.key"))
    (tmp_path / "other.key").write_bytes(_key(b"password"))
    with pytest.raises(errors.InvalidSetting, match="has a password"):
        tls_files.check(certificate, str(tmp_path / "other.key"))


def _key(password: bytes = b"") -> bytes:
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        protection = serialization.BestAvailableEncryption(password)
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
    )
