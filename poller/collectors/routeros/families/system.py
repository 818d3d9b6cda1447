"""Families about the router itself: hardware, health, software, users, certificates."""

from __future__ import annotations

from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    Family,
    Info,
    Menu,
    Metric,
    Table,
    flag,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import instant, is_, quantity, seconds

_RESOURCE = Table(
    metrics=(
        gauge("uptime", "system_uptime", "Seconds since the router started", seconds),
        gauge("free-memory", "system_free_memory", "Free memory in bytes"),
        gauge("total-memory", "system_total_memory", "Memory in bytes"),
        gauge("free-hdd-space", "system_free_hdd_space", "Free storage in bytes"),
        gauge("total-hdd-space", "system_total_hdd_space", "Storage in bytes"),
        gauge("cpu-load", "system_cpu_load", "Processor load in percent"),
        gauge("cpu-count", "system_cpu_count", "Number of processors"),
        gauge("cpu-frequency", "system_cpu_frequency", "Processor clock in MHz"),
        gauge("bad-blocks", "system_bad_blocks", "Bad blocks of the storage in percent"),
    ),
    info=Info(
        "system_info",
        "What the router is: hardware and software",
        labels_from("version", "board-name", "platform", "architecture-name", "cpu"),
    ),
)

RESOURCE = Family(
    "resource",
    "uptime, memory, storage, processor",
    (Menu("/system/resource", (_RESOURCE,)),),
)

_IDENTITY = Table(
    info=Info("system_identity_info", "How the router is called", labels_from("name"))
)

IDENTITY = Family("identity", "the router's name", (Menu("/system/identity", (_IDENTITY,)),))

_ROUTERBOARD = Table(
    metrics=(
        flag(
            "newer",
            "routerboard_firmware_upgrade_available",
            "Is there other firmware than the one that runs?",
        ),
    ),
    info=Info(
        "routerboard_info",
        "The board: model, serial number, firmware",
        labels_from(
            "routerboard",
            "model",
            "serial-number",
            "firmware-type",
            "factory-firmware",
            "current-firmware",
            "upgrade-firmware",
        ),
    ),
    transform=row_transforms.add_newer("current-firmware", "upgrade-firmware"),
    computed=("newer",),
)

ROUTERBOARD = Family(
    "routerboard",
    "model, serial number, firmware of the board",
    (Menu("/system/routerboard", (_ROUTERBOARD,)),),
    every_s=3600,
)


def _sensor(property_: str, name: str, help_: str) -> Metric:
    return gauge(property_, f"system_{name}", help_, quantity)


def _temperature(property_: str, name: str, place: str) -> Metric:
    return _sensor(property_, name, f"Temperature of {place} in degrees Celsius")


def _fan(number: int, name: str) -> Metric:
    return _sensor(f"fan{number}-speed", name, f"Fan {number}, revolutions per minute")


def _power_supply(number: int) -> tuple[Metric, ...]:
    supply = f"psu{number}"
    return (
        _sensor(f"{supply}-voltage", f"{supply}_voltage", f"Power supply {number}, volts"),
        _sensor(f"{supply}-current", f"{supply}_current", f"Power supply {number}, amperes"),
        gauge(
            f"{supply}-state",
            f"system_{supply}_state",
            f"Does power supply {number} work? 1 yes, 0 no",
            is_("ok", "true", "yes"),
        ),
    )


_HEALTH = Table(
    metrics=(
        _sensor("voltage", "routerboard_voltage", "Supply voltage in volts"),
        _temperature("temperature", "routerboard_temperature", "the board"),
        _temperature("phy-temperature", "phy_temperature", "the PHY"),
        _temperature("cpu-temperature", "cpu_temperature", "the processor"),
        _temperature("switch-temperature", "switch_temperature", "the switch chip"),
        _fan(1, "fan_one_speed"),
        _fan(2, "fan_two_speed"),
        _fan(3, "fan_three_speed"),
        _fan(4, "fan_four_speed"),
        _sensor("power-consumption", "power_consumption", "Power taken in watts"),
        _temperature("board-temperature1", "board_temperature1", "board sensor 1"),
        _temperature("board-temperature2", "board_temperature2", "board sensor 2"),
        *_power_supply(1),
        *_power_supply(2),
        _sensor(
            "poe-out-consumption", "poe_out_consumption", "Power given to PoE devices in watts"
        ),
        _sensor("jack-voltage", "jack_voltage", "Voltage at the jack"),
        _sensor("2pin-voltage", "2pin_voltage", "Voltage at the 2-pin connector"),
        _sensor("poe-in-voltage", "poe_in_voltage", "Voltage of PoE in"),
    ),
    transform=row_transforms.one_sensor_row,
    transform_inputs=("name", "value"),
)

HEALTH = Family(
    "health", "voltages, temperatures, fans, power supplies", (Menu("/system/health", (_HEALTH,)),)
)

_PACKAGES = Table(
    labels=labels_from("name"),
    info=Info(
        "installed_packages_info",
        "An installed package",
        labels_from("version", "build-time", "disabled"),
    ),
)

_UPDATE = Table(
    metrics=(flag("newer", "system_update_available", "Did the router find a newer version?"),),
    info=Info(
        "system_update_info",
        "Versions",
        labels_from("channel", "installed-version", "latest-version"),
    ),
    transform=row_transforms.add_newer("installed-version", "latest-version"),
    computed=("newer",),
)

PACKAGES = Family(
    "packages",
    "installed packages, and whether there is a newer version",
    (Menu("/system/package", (_PACKAGES,)), Menu("/system/package/update", (_UPDATE,))),
    every_s=3600,
)

_USERS = Table(
    labels=labels_from("name", "address", "via", "group"),
    metrics=(
        gauge(
            "when",
            "active_users_info",
            "When the user logged in, in the router's time, as seconds since 1970",
            instant,
        ),
    ),
)

USERS = Family("users", "users that are logged in", (Menu("/user/active", (_USERS,)),))

_CERTIFICATES = Table(
    labels=labels_from("name"),
    metrics=(
        gauge(
            "invalid-after",
            "certificate_expiration_timestamp_seconds",
            "When the certificate ends, in seconds since 1970",
            instant,
        ),
    ),
    info=Info(
        "certificate_info",
        "A certificate of the router",
        labels_from(
            "digest-algorithm", "key-type", "country", "state", "locality", "organization",
            "common-name", "key-size", "subject-alt-name", "days-valid", "trusted", "key-usage",
            "ca", "serial-number", "fingerprint", "akid", "skid", "invalid-before",
            "invalid-after",
        ),
    ),
)  # fmt: skip

CERTIFICATES = Family(
    "certificates",
    "expiry of certificates",
    (Menu("/certificate", (_CERTIFICATES,)),),
    every_s=3600,
)

_CONTAINERS = Table(
    labels=labels_from("name"),
    info=Info("container_info", "A container", labels_from("repo", "os", "arch", "status")),
)

CONTAINERS = Family(
    "containers", "containers and their state", (Menu("/container", (_CONTAINERS,)),)
)

_CLOUD = Table(
    info=Info(
        "public_ip_address_info",
        "The public address of the router",
        labels_from("public-address", "public-address-ipv6", "dns-name"),
    )
)

CLOUD = Family(
    "cloud",
    "the router's public address, as MikroTik's cloud sees it",
    (Menu("/ip/cloud", (_CLOUD,)),),
    every_s=300,
)

FAMILIES = (
    RESOURCE,
    IDENTITY,
    ROUTERBOARD,
    HEALTH,
    PACKAGES,
    USERS,
    CERTIFICATES,
    CONTAINERS,
    CLOUD,
)
