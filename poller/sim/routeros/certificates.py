"""TLS for api-ssl: a certificate of a new CA, or none (anonymous Diffie-Hellman)."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

MAX_ADDRESSES = 256  # in the certificate: those of the first routers of the fleet
_DAYS = datetime.timedelta(days=30)
_PEM = serialization.Encoding.PEM
# The 2048-bit group of RFC 7919, which every client with finite-field Diffie-Hellman accepts.
_FFDHE_2048 = bytes.fromhex(
    "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695"
    "A9E13641146433FBCC939DCE249B3EF97D2FE363630C75D8F681B202AEC4617A"
    "D3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3B557135E7F57C935"
    "984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797A"
    "BC0AB182B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4"
    "AE56EDE76372BB190B07A7C8EE0A6D709E02FCE1CDF7E2ECC03404CD28342F61"
    "9172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC2EC22005"
    "C58EF1837D1683B2C6F34A26C1B2EFFA886B423861285C97FFFFFFFFFFFFFFFF"
)


def signed(directory: Path, addresses: Sequence[str]) -> ssl.SSLContext:
    """Return a context with a certificate for these addresses; `ca.pem` holds the CA."""
    authority = ec.generate_private_key(ec.SECP256R1())
    router_key = ec.generate_private_key(ec.SECP256R1())
    issuer = _name("poller sim CA")
    ca = _certificate(issuer, issuer, authority.public_key(), authority, [])
    router = _certificate(
        _name("simulated router"),
        issuer,
        router_key.public_key(),
        authority,
        addresses[:MAX_ADDRESSES],
    )
    key = router_key.private_bytes(
        _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (directory / "ca.pem").write_bytes(ca.public_bytes(_PEM))
    chain = directory / "router.pem"
    chain.touch(mode=0o600)
    chain.write_bytes(router.public_bytes(_PEM) + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context


def anonymous(directory: Path) -> ssl.SSLContext:
    """Return a context without a certificate: anonymous Diffie-Hellman, up to TLS 1.2."""
    group = directory / "dh.pem"
    group.write_text(_parameters())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ADH:AECDH:@SECLEVEL=0")
    context.load_dh_params(str(group))
    return context


def _parameters() -> str:
    """Return the group in the PEM form of OpenSSL: a sequence of the prime and the generator 2."""
    prime = b"\x02\x82\x01\x01\0" + _FFDHE_2048
    encoded = base64.encodebytes(b"\x30\x82\x01\x08" + prime + b"\x02\x01\x02").decode()
    return f"-----BEGIN DH PARAMETERS-----\n{encoded}-----END DH PARAMETERS-----\n"


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    addresses: Sequence[str],
) -> x509.Certificate:
    """Make a certificate for the addresses; without addresses, that of a CA."""
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    )
    begun = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAYS)
        .not_valid_after(now + _DAYS)
        .add_extension(x509.BasicConstraints(ca=not addresses, path_length=None), critical=True)
    )
    return (begun.add_extension(names, critical=False) if addresses else begun).sign(
        signer, hashes.SHA256()
    )
