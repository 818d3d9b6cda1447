"""Web servers that say exactly what a test wants, byte by byte, over TCP or TLS."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

#: Gets the request's head and the connection; what it does not close is closed for it.
Script = Callable[[bytes, socket.socket], None]


@dataclass
class Server:
    port: int
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0


def saying(head: str, body: bytes = b"") -> Script:
    """Always the same answer; the length is told."""

    def script(_: bytes, connection: socket.socket) -> None:
        connection.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    return script


@contextmanager
def serving(
    script: Script, context: ssl.SSLContext | None = None, *, listens: bool = True
) -> Iterator[Server]:
    """One thread per connection, until the test is over; one that does not listen speaks at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener.getsockname()[1])
        over = threading.Event()
        open_: list[socket.socket] = []

        def serve(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                secured = (
                    context.wrap_socket(connection, server_side=True) if context else connection
                )
                with secured:
                    head = _head(secured) if listens else b"nothing"
                    if head:
                        server.asked.append(head)
                        script(head, secured)

        def accept() -> None:
            while not over.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    server.connections += 1
                    open_.append(connection)
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            over.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for connection in open_:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _head(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            return b""
        head += piece
    return head


@dataclass(frozen=True)
class Identity:
    """A self-signed certificate, and a server's context with it."""

    ca_file: Path
    context: ssl.SSLContext


def identity(directory: Path, days: float = 30, name: str = "127.0.0.1") -> Identity:
    """Good for so many days from now; for an address, or a name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{name} (test)")])
    now = datetime.datetime.now(datetime.UTC)
    whom: x509.GeneralName = x509.DNSName(name)
    with suppress(ValueError):
        whom = x509.IPAddress(ipaddress.ip_address(name))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=100))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([whom]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = directory / f"{name}.pem", directory / f"{name}.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    secret.write_bytes(key.private_bytes(*form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, secret)
    return Identity(certificate, context)
