"""The options of a `kafka` sink: brokers, topic, login."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from poller import errors
from poller.domain.inventory import host_port
from poller.domain.inventory.host_port import HostPort
from poller.sinks.bus import poll_messages
from poller.sinks.tls_options import OptionalFile, TlsOptions, read_secret


def _broker(text: str) -> str:
    try:
        host, port = host_port.parse(text)
    except errors.InvalidInput as error:
        raise ValueError(f"a broker is host:port; {error.cause}") from None
    if port is None:
        raise ValueError("a broker is host:port; the port is missing")
    return str(HostPort(host, port))


class KafkaOptions(TlsOptions):
    """The options of a `kafka` sink."""

    servers: tuple[Annotated[str, AfterValidator(_broker)], ...] = Field(
        ("127.0.0.1:9092",), min_length=1, description="Some brokers of the cluster, host:port."
    )
    topic: Annotated[str, AfterValidator(poll_messages.check_template)] = Field(
        "poller.readings",
        description="Topic of a poll; {site}, {device}, {target}, {collector}, {id} are filled.",
    )
    tls: bool = Field(False, description="Connect by TLS.")
    username: str = Field("", description="User of SASL, with `password_file`.")
    password_file: OptionalFile = Field(None, description="File with the password of `username`.")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="How `username` logs in."
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "lz4", description="Compression of messages."
    )
    max_bytes: int = Field(
        1_000_000,
        ge=10_000,
        le=100_000_000,
        description="Bytes of a message at most, as the topic allows; a larger poll is divided.",
    )
    timeout_s: float = Field(5.0, ge=0.1, le=60, description="Time until all polls have acks.")

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("username and password_file belong together")
        if not self.tls and (self.ca_file or self.cert_file or self.insecure):
            raise ValueError("ca_file, cert_file and insecure need tls = true")
        return self

    def properties(self, sink: str) -> dict[str, Any]:
        """Return the configuration of librdkafka. Raises InvalidSetting for a bad file."""
        properties: dict[str, Any] = {
            "bootstrap.servers": ",".join(self.servers),
            "client.id": "poller",
            "log_level": 2,  # the error callback is told of brokers that do not answer
            "acks": "all",
            "enable.idempotence": True,
            # librdkafka repeats a message itself, in order, for as long as the process lives: a
            # repetition by the sink would be another message for the broker.
            "message.timeout.ms": 0,
            "message.max.bytes": self.max_bytes + 10_000,
            "compression.type": self.compression,
            "partitioner": "murmur2_random",  # as in clients in Java
            "socket.keepalive.enable": True,
            "reconnect.backoff.max.ms": 5_000,
            "security.protocol": self._protocol,
        }
        if self.password_file:
            properties["sasl.mechanism"] = self.sasl_mechanism
            properties["sasl.username"] = self.username
            properties["sasl.password"] = read_secret(sink, "password_file", self.password_file)
        if self.tls:
            self.context(sink)  # checks the files: librdkafka names none of them
            properties |= self._certificates()
        return properties

    @property
    def _protocol(self) -> str:
        transport = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{transport}" if self.username else transport

    def _certificates(self) -> dict[str, Any]:
        properties: dict[str, Any] = {
            "enable.ssl.certificate.verification": not self.insecure,
            "ssl.endpoint.identification.algorithm": "none" if self.insecure else "https",
        }
        if self.ca_file:
            properties["ssl.ca.location"] = str(self.ca_file)
        if self.cert_file:
            properties["ssl.certificate.location"] = str(self.cert_file)
            properties["ssl.key.location"] = str(self.key_file or self.cert_file)
        return properties
