"""API-SSL: trust is configured with the target and checked before the login is sent."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ipaddress
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from poller import errors
from poller.domain.failures.outcome import Result
from tests.integration.scripted_router import healthy, poll, poll_script, scripted

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.routeros import RouterOsCollector


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate, with its key in the same file."""

    pem: Path
    sha256: str

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        return context


def certificate(path: Path, name: x509.GeneralName) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "router")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + pem)
    return Certificate(
        path, hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).hexdigest()
    )


@pytest.fixture(scope="module")
def by_address(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    path = tmp_path_factory.mktemp("tls") / "address.pem"
    return certificate(path, x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


@pytest.fixture(scope="module")
def by_name(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls") / "name.pem", x509.DNSName("core.example"))


def without_certificate() -> ssl.SSLContext:
    """The default api-ssl of RouterOS: anonymous Diffie-Hellman."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")
    return context


def test_the_right_ca(by_address: Certificate) -> None:
    result, _ = poll(healthy, served=by_address.server(), tls=True, ca_file=str(by_address.pem))
    assert result.result is Result.OK, result.message


def test_tls_that_is_asked_for_checks_with_the_cas_of_the_system(by_address: Certificate) -> None:
    result, heard = poll(healthy, served=by_address.server(), tls=True)
    assert (result.result, result.error_code) == (Result.FAILED, "protocol_error")
    assert "certificate verify failed" in result.message
    assert heard == []  # the password was not sent to a stranger


def test_another_ca_is_refused(by_address: Certificate, by_name: Certificate) -> None:
    result, heard = poll(healthy, served=by_address.server(), tls=True, ca_file=str(by_name.pem))
    assert "certificate verify failed" in result.message
    assert heard == []


def test_the_certificate_must_be_for_the_address_that_is_polled(by_name: Certificate) -> None:
    result, heard = poll(healthy, served=by_name.server(), tls=True, ca_file=str(by_name.pem))
    assert "IP address mismatch" in result.message
    assert heard == []


@pytest.mark.parametrize(("name", "good"), [("core.example", True), ("edge.example", False)])
def test_the_certificate_may_be_for_the_given_name(
    name: str, good: bool, by_name: Certificate
) -> None:
    result, heard = poll(
        healthy, served=by_name.server(), tls=True, ca_file=str(by_name.pem), server_name=name
    )
    assert (result.result is Result.OK) is good, result.message
    assert bool(heard) is good


@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_pinned_certificate_is_trusted_with_any_ca(
    loop: Callable[..., None], by_name: Certificate
) -> None:
    async def run() -> None:
        async with scripted(healthy, by_name.server()) as script:
            written = by_name.sha256.upper()
            for pin in (by_name.sha256, ":".join(written[at : at + 2] for at in range(0, 64, 2))):
                result = await poll_script(script, tls=True, fingerprint=pin)
                assert result.result is Result.OK, result.message

    loop(run())


@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_any_other_certificate_is_refused_before_the_login(
    loop: Callable[..., None], by_name: Certificate, by_address: Certificate
) -> None:
    async def run() -> None:
        for served in (by_address.server(), without_certificate()):
            async with scripted(healthy, served) as script:
                result = await poll_script(script, tls=True, fingerprint=by_name.sha256)
                assert result.result is Result.FAILED
                assert script.heard == []

    loop(run())


def test_a_mismatch_names_the_certificate_that_was_found(
    by_name: Certificate, by_address: Certificate
) -> None:
    result, _ = poll(healthy, served=by_address.server(), tls=True, fingerprint=by_name.sha256)
    assert result.error_code == "protocol_error"
    assert by_address.sha256 in result.message


def test_the_default_checks_no_certificate(by_name: Certificate) -> None:
    """The default keeps passive listeners away, and works with any router."""
    result, _ = poll(healthy, served=by_name.server(), tls=None)
    assert result.result is Result.OK, result.message


def test_insecure_checks_no_certificate(by_name: Certificate) -> None:
    result, _ = poll(healthy, served=by_name.server(), tls=True, insecure=True)
    assert result.result is Result.OK, result.message


@pytest.mark.parametrize(
    "options", [{"tls": None}, {"tls": None, "insecure": True}, {"tls": True, "insecure": True}]
)
def test_a_router_without_a_certificate_is_polled_unless_it_is_checked(
    options: dict[str, Any],
) -> None:
    """A check hints at the commands that give the router a certificate."""
    result, _ = poll(healthy, served=without_certificate(), **options)
    assert result.result is Result.OK, result.message
    result, heard = poll(healthy, served=without_certificate(), tls=True)
    assert (result.result, heard) == (Result.FAILED, [])
    assert "the router has no certificate, or the port is not that of api-ssl" in result.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tls": False, "insecure": True}, "insecure needs TLS"),
        ({"tls": False, "fingerprint": "ab" * 32}, "fingerprint needs TLS"),
        ({"tls": False, "server_name": "core"}, "server_name needs TLS"),
        ({"tls": True, "insecure": True, "ca_file": "/x.pem"}, "contradict"),
        ({"tls": True, "insecure": True, "fingerprint": "ab" * 32}, "contradict"),
        ({"tls": True, "ca_file": "/x.pem", "fingerprint": "ab" * 32}, "contradict"),
        (
            {"tls": True, "insecure": True, "server_name": "core"},
            "server_name means nothing with insecure",
        ),
        ({"tls": True, "fingerprint": "ab" * 31}, "64 hexadecimal digits"),
        ({"tls": True, "fingerprint": "xy" * 32}, "64 hexadecimal digits"),
        ({"tls": True, "fingerprint": "ab" * 20}, "SHA-1"),
    ],
)
def test_contradictory_options_are_refused_when_the_target_is_saved(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        RouterOsCollector.Options.model_validate(options)


def test_an_invalid_ca_file_is_refused_when_saved_and_named_when_polled(tmp_path: Path) -> None:
    """An invalid CA file is not the router's fault, and nothing is sent to the router."""
    broken = tmp_path / "none.pem"
    for text in (None, "no certificate"):
        if text is not None:
            broken.write_text(text)
        with pytest.raises(errors.ConfigError, match=r"none\.pem"):
            RouterOsCollector().check_options(
                RouterOsCollector.Options(tls=True, ca_file=str(broken))
            )
        result, heard = poll(healthy, tls=True, ca_file=str(broken))
        assert (result.result, result.error_code) == (Result.FAILED, "options_invalid")
        assert "none.pem" in result.message
        assert heard == []


def test_a_ca_file_that_was_replaced_counts_at_the_next_login(
    tmp_path: Path, by_address: Certificate
) -> None:
    ca_file = tmp_path / "ca.pem"
    other = certificate(tmp_path / "other.pem", x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    ca_file.write_bytes(other.pem.read_bytes())
    assert (
        poll(healthy, served=by_address.server(), tls=True, ca_file=str(ca_file))[0].result
        is Result.FAILED
    )
    ca_file.write_bytes(by_address.pem.read_bytes())
    result, _ = poll(healthy, served=by_address.server(), tls=True, ca_file=str(ca_file))
    assert result.result is Result.OK, result.message


def test_plain_text_to_a_tls_port_is_an_error_not_a_hang(by_address: Certificate) -> None:
    result, _ = poll(healthy, served=by_address.server(), timeout_s=2)
    assert result.result is Result.FAILED
    assert result.error_code != "timeout"
