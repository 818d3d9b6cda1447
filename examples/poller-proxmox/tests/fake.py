"""A fake server for both products: fixed responses over real TLS, and a check of the token."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

TOKEN = "monitor@pve!poller=6a1f9b52-0c7e-4c51-9d0e-2f4f2a3c9b11"
VE_HEADER = f"PVEAPIToken={TOKEN}"
BACKUP_HEADER = f"PBSAPIToken={TOKEN.replace('=', ':')}"
GIB = 2**30

RESOURCES: list[dict[str, Any]] = [
    {
        "type": "node", "id": "node/pve1", "node": "pve1", "status": "online",
        "level": "", "cgroup-mode": 2, "uptime": 1_209_600,
        "cpu": 0.0372, "maxcpu": 16, "mem": 21 * GIB, "maxmem": 64 * GIB,
        "disk": 9 * GIB, "maxdisk": 94 * GIB,
    },
    {
        "type": "node", "id": "node/pve2", "node": "pve2", "status": "offline",
        "level": "",
    },
    {
        "type": "qemu", "id": "qemu/100", "node": "pve1", "status": "running",
        "vmid": 100, "name": "db1", "template": 0, "uptime": 86_400,
        "cpu": 0.25, "maxcpu": 4, "mem": 3 * GIB, "maxmem": 8 * GIB,
        "disk": 0, "maxdisk": 32 * GIB, "diskread": 555, "diskwrite": 777,
        "netin": 123_456_789, "netout": 987_654,
        "pool": "prod", "tags": "db;linux",
    },
    {
        "type": "lxc", "id": "lxc/101", "node": "pve1", "status": "stopped",
        "vmid": 101, "name": "dns", "template": 0, "uptime": 0,
        "cpu": 0, "maxcpu": 1, "mem": 0, "maxmem": GIB,
        "disk": 0, "maxdisk": 8 * GIB,
    },
    {
        "type": "qemu", "id": "qemu/9000", "node": "pve1", "status": "stopped",
        "vmid": 9000, "name": "golden", "template": 1,
    },
    {
        "type": "storage", "id": "storage/pve1/local", "node": "pve1", "status": "available",
        "storage": "local", "plugintype": "dir", "shared": 0, "content": "iso,backup",
        "disk": 9 * GIB, "maxdisk": 94 * GIB,
    },
    {
        "type": "storage", "id": "storage/pve2/pbs", "node": "pve2", "status": "unknown",
        "storage": "pbs", "plugintype": "pbs", "shared": 1, "content": "backup",
    },
    {
        "type": "sdn", "id": "sdn/pve1/localnetwork", "node": "pve1", "status": "ok",
        "sdn": "localnetwork",
    },
]  # fmt: skip
CLUSTER = [
    {"type": "cluster", "id": "cluster", "name": "lab", "nodes": 2, "quorate": 1, "version": 4},
    {
        "type": "node",
        "id": "node/pve1",
        "name": "pve1",
        "nodeid": 1,
        "online": 1,
        "local": 1,
        "ip": "192.0.2.11",
    },
]


def _task(
    task_type: str, guest: str, started: int, duration: int | None, status: str = "OK"
) -> dict[str, Any]:
    """Return a task of node pve1. A task without a duration still runs."""
    task = {
        "node": "pve1",
        "type": task_type,
        "id": guest,
        "user": "root@pam",
        "starttime": started,
        "saved": "1",
    }
    if duration is None:
        return task
    return {**task, "endtime": started + duration, "status": status}


VE_TASKS = [
    _task("vzdump", "100", 1_700_090_000, None),
    _task("vzdump", "100", 1_700_000_000, 300),
    _task("vzdump", "101", 1_700_000_400, 60, "job errors"),
    _task("vzdump", "100", 1_699_900_000, 200, "interrupted by signal"),
    _task("qmstart", "100", 1_699_000_000, 3),
]
USAGE = [
    {
        "store": "main",
        "total": 4000 * GIB, "used": 1500 * GIB, "avail": 2500 * GIB,
        "estimated-full-date": 1_900_000_000, "history": [0.3, 0.31],
        "gc-status": {
            "disk-bytes": 1400 * GIB,
            "index-data-bytes": 9800 * GIB,
            "pending-bytes": 5 * GIB,
        },
    },
    {"store": "usb", "error": "unable to open datastore: No such device"},
]  # fmt: skip
NODE = {
    "cpu": 0.02,
    "wait": 0.003,
    "uptime": 777,
    "loadavg": [0.1, 0.2, 0.3],
    "memory": {"used": 2 * GIB, "total": 16 * GIB, "free": 14 * GIB},
    "root": {"used": 3 * GIB, "total": 30 * GIB, "avail": 27 * GIB},
}
GROUPS = [
    {
        "backup-type": "vm",
        "backup-id": "100",
        "last-backup": 1_700_000_290,
        "backup-count": 14,
        "files": [],
    },
    {
        "backup-type": "host",
        "backup-id": "laptop",
        "last-backup": 1_699_000_000,
        "backup-count": 3,
        "files": [],
    },
]
BACKUP_TASKS = [
    {
        "node": "pbs",
        "worker_type": "garbage_collection",
        "worker_id": "main",
        "starttime": 100,
        "endtime": 160,
        "status": "OK",
        "user": "root@pam",
    },
    {
        "node": "pbs",
        "worker_type": "backup",
        "worker_id": "main:vm/100",
        "starttime": 200,
        "endtime": 260,
        "status": "OK",
        "user": "root@pam",
    },
]

VE = {"/cluster/resources": RESOURCES, "/cluster/status": CLUSTER, "/cluster/tasks": VE_TASKS}
BACKUP = {
    "/status/datastore-usage": USAGE,
    "/nodes/localhost/status": NODE,
    "/nodes/localhost/tasks": BACKUP_TASKS,
    "/admin/datastore/main/groups": GROUPS,
}


@dataclass
class FakeServer:
    """A running server. A test may change `responses` and `reason`.

    A response is the `data` of a JSON body, a status code (int), or the whole body (bytes).
    `reason` makes the reason phrase of an error from the Authorization header of the request.
    """

    port: int
    ca_file: Path
    fingerprint: str
    header: str
    responses: dict[str, Any]
    requested: list[str] = field(default_factory=list)
    connections: int = 0
    reason: Callable[[str], str] | None = None


@contextmanager
def serving(directory: Path, responses: dict[str, Any], header: str) -> Iterator[FakeServer]:
    """Run a server on a free port of the loopback interface.

    The server sends `responses` by path and accepts only requests with the Authorization `header`.
    """
    certificate, key, fingerprint = _write_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    server = _HttpServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    port = server.server_address[1]
    server.fake = FakeServer(port, certificate, fingerprint, header, dict(responses))

    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield server.fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    fake: FakeServer

    def get_request(self) -> Any:
        self.fake.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that refuses the certificate closes the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: Buffers a whole response. In two packets it would wait for the client's acknowledgement.
    wbufsize = 65536

    def do_GET(self) -> None:
        fake: FakeServer = self.server.fake  # type: ignore[attr-defined]
        fake.requested.append(self.path)
        if self.headers.get("Authorization") != fake.header:
            self._send(401, b"")
            return

        path = self.path.removeprefix("/api2/json").partition("?")[0]
        response = fake.responses.get(path, 501)
        if isinstance(response, int):
            self._send(response, b'{"data":null}')
        elif isinstance(response, bytes):
            self._send(200, response)
        else:
            self._send(200, json.dumps({"data": response}).encode())

    def _send(self, status: int, body: bytes) -> None:
        fake: FakeServer = self.server.fake  # type: ignore[attr-defined]
        reason = None
        if status != 200 and fake.reason is not None:
            reason = fake.reason(self.headers["Authorization"])

        self.send_response(status, reason)
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _write_certificate(directory: Path) -> tuple[Path, Path, str]:
    """Write a self-signed certificate, as a new installation has one, and its key.

    Returns both paths and the fingerprint of the certificate.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pve1.example.org")])
    now = datetime.datetime.now(datetime.UTC)

    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )

    certificate_path = directory / "certificate.pem"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    key_path = directory / "key.pem"
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )

    digest = hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).digest()
    return certificate_path, key_path, digest.hex(":").upper()
