"""A small Proxmox: the answers of both products to what we ask, over real TLS, with tokens that it checks."""

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

RESOURCES = [
    {
        "id": "node/pve1", "type": "node", "node": "pve1", "status": "online", "level": "", "cgroup-mode": 2,
        "cpu": 0.0372, "maxcpu": 16, "mem": 21 * GIB, "maxmem": 64 * GIB, "disk": 9 * GIB, "maxdisk": 94 * GIB,
        "uptime": 1_209_600,
    },
    {"id": "node/pve2", "type": "node", "node": "pve2", "status": "offline", "level": ""},
    {
        "id": "qemu/100", "type": "qemu", "vmid": 100, "name": "db1", "node": "pve1", "status": "running",
        "template": 0, "cpu": 0.25, "maxcpu": 4, "mem": 3 * GIB, "maxmem": 8 * GIB, "disk": 0, "maxdisk": 32 * GIB,
        "uptime": 86_400, "netin": 123_456_789, "netout": 987_654, "diskread": 555, "diskwrite": 777,
        "pool": "prod", "tags": "db;linux",
    },
    {
        "id": "lxc/101", "type": "lxc", "vmid": 101, "name": "dns", "node": "pve1", "status": "stopped", "template": 0,
        "cpu": 0, "maxcpu": 1, "mem": 0, "maxmem": GIB, "disk": 0, "maxdisk": 8 * GIB, "uptime": 0,
    },
    {
        "id": "qemu/9000", "type": "qemu", "vmid": 9000, "name": "golden", "node": "pve1", "status": "stopped",
        "template": 1,
    },
    {
        "id": "storage/pve1/local", "type": "storage", "storage": "local", "node": "pve1", "status": "available",
        "disk": 9 * GIB, "maxdisk": 94 * GIB, "shared": 0, "plugintype": "dir", "content": "iso,backup",
    },
    {
        "id": "storage/pve2/pbs", "type": "storage", "storage": "pbs", "node": "pve2", "status": "unknown",
        "shared": 1, "plugintype": "pbs", "content": "backup",
    },
    {"id": "sdn/pve1/localnetwork", "type": "sdn", "sdn": "localnetwork", "node": "pve1", "status": "ok"},
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
    node: str, kind: str, about: str, began: int, took: int | None, status: str = "OK"
) -> dict[str, Any]:
    task = {
        "node": node,
        "type": kind,
        "id": about,
        "user": "root@pam",
        "starttime": began,
        "saved": "1",
    }
    return task if took is None else {**task, "endtime": began + took, "status": status}


VE_TASKS = [
    _task("pve1", "vzdump", "100", 1_700_090_000, None),
    _task("pve1", "vzdump", "100", 1_700_000_000, 300),
    _task("pve1", "vzdump", "101", 1_700_000_400, 60, "job errors"),
    _task("pve1", "vzdump", "100", 1_699_900_000, 200, "interrupted by signal"),
    _task("pve1", "qmstart", "100", 1_699_000_000, 3),
]
USAGE = [
    {
        "store": "main", "total": 4000 * GIB, "used": 1500 * GIB, "avail": 2500 * GIB,
        "estimated-full-date": 1_900_000_000, "history": [0.3, 0.31],
        "gc-status": {"disk-bytes": 1400 * GIB, "index-data-bytes": 9800 * GIB, "pending-bytes": 5 * GIB},
    },
    {"store": "usb", "error": "unable to open datastore: No such device"},
]  # fmt: skip
NODE = {
    "cpu": 0.02, "wait": 0.003, "uptime": 777, "loadavg": [0.1, 0.2, 0.3],
    "memory": {"used": 2 * GIB, "total": 16 * GIB, "free": 14 * GIB},
    "root": {"used": 3 * GIB, "total": 30 * GIB, "avail": 27 * GIB},
}  # fmt: skip
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
    {"node": "pbs", "worker_type": "garbage_collection", "worker_id": "main", "starttime": 100, "endtime": 160,
     "status": "OK", "user": "root@pam"},
    {"node": "pbs", "worker_type": "backup", "worker_id": "main:vm/100", "starttime": 200, "endtime": 260,
     "status": "OK", "user": "root@pam"},
]  # fmt: skip

VE = {"/cluster/resources": RESOURCES, "/cluster/status": CLUSTER, "/cluster/tasks": VE_TASKS}
BACKUP = {
    "/status/datastore-usage": USAGE,
    "/nodes/localhost/status": NODE,
    "/nodes/localhost/tasks": BACKUP_TASKS,
    "/admin/datastore/main/groups": GROUPS,
}


@dataclass
class Fake:
    """A server that runs. `answers` may be changed; a number is a status code, bytes are sent as they are.

    `reason`, if given, makes the reason phrase of an error of the header that came with the request.
    """

    port: int
    ca_file: Path
    fingerprint: str
    header: str
    answers: dict[str, Any]
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    reason: Callable[[str], str] | None = None


@contextmanager
def serving(directory: Path, answers: dict[str, Any], header: str) -> Iterator[Fake]:
    certificate, key, fingerprint = _certificate(directory)
    server = _Server(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    server.fake = Fake(server.server_address[1], certificate, fingerprint, header, dict(answers))
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    fake: Fake

    def get_request(self) -> Any:
        self.fake.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not like the certificate hangs up: that is its right."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # an answer in one piece: in two it waits for the other side's acknowledgement

    def do_GET(self) -> None:
        fake: Fake = self.server.fake  # type: ignore[attr-defined]
        path = self.path.removeprefix("/api2/json").partition("?")[0]
        fake.asked.append(self.path)
        if self.headers.get("Authorization") != fake.header:
            self._say(401, b"")
            return
        answer = fake.answers.get(path, 501)
        if isinstance(answer, int):
            self._say(answer, b'{"data":null}')
        else:
            self._say(
                200, answer if isinstance(answer, bytes) else json.dumps({"data": answer}).encode()
            )

    def _say(self, status: int, body: bytes) -> None:
        reason = self.server.fake.reason if status != 200 else None  # type: ignore[attr-defined]
        self.send_response(status, reason and reason(self.headers["Authorization"]))
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def _certificate(directory: Path) -> tuple[Path, Path, str]:
    """Self-signed, as that of every fresh installation."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pve1.example.org")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
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
    certificate, secret = directory / "certificate.pem", directory / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    der = made.public_bytes(serialization.Encoding.DER)
    digest = hashlib.sha256(der).hexdigest().upper()
    return certificate, secret, ":".join(digest[at : at + 2] for at in range(0, 64, 2))
