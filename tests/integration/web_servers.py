"""Web servers that send exactly the bytes of a test, over TCP or TLS."""

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

#: Called with the head of a request and the connection, which is closed afterwards.
Script = Callable[[bytes, socket.socket], None]


@dataclass
class Server:
    port: int
    requests: list[bytes] = field(default_factory=list)  # their heads
    connections: int = 0


def saying(head: str, body: bytes = b"") -> Script:
    """A script that always sends the same response, with its length."""

    def script(_: bytes, connection: socket.socket) -> None:
        connection.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    return script


@contextmanager
def serving(
    script: Script, context: ssl.SSLContext | None = None, *, listens: bool = True
) -> Iterator[Server]:
    """A server with one thread per connection. Without `listens` it sends before it reads."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener.getsockname()[1])
        stopping = threading.Event()
        connections: list[socket.socket] = []

        def serve(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                secured = connection
                if context:
                    secured = context.wrap_socket(connection, server_side=True)
                with secured:
                    head = _head(secured) if listens else b"nothing"
                    if head:
                        server.requests.append(head)
                        script(head, secured)

        def accept() -> None:
            while not stopping.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    server.connections += 1
                    connections.append(connection)
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            stopping.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for connection in connections:
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


def body_of(head: bytes, connection: socket.socket) -> bytes:
    """Return the body of a request with a length; `head` may hold a part of it."""
    fields, _, body = head.partition(b"\r\n\r\n")
    length = int(fields.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return body


@dataclass(frozen=True)
class Identity:
    """A self-signed certificate, and the TLS context of a server with it."""

    ca_file: Path
    context: ssl.SSLContext


def identity(directory: Path, days: float = 30, name: str = "127.0.0.1") -> Identity:
    """A certificate for an address or a name, valid for `days` from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{name} (test)")])
    now = datetime.datetime.now(datetime.UTC)
    subject_name: x509.GeneralName = x509.DNSName(name)
    with suppress(ValueError):
        subject_name = x509.IPAddress(ipaddress.ip_address(name))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=100))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([subject_name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file = directory / f"{name}.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    key_file = directory / f"{name}.key"
    key_bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key_file.write_bytes(key_bytes)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    return Identity(certificate_file, context)
