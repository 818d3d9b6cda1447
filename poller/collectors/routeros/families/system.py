"""The router itself: what it is, how it feels, what it runs, who is logged in."""

from __future__ import annotations

from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import Ask, Family, Info, Metric, Table, flag, same

RESOURCE = Family(
    "resource",
    "uptime, memory, storage, processor",
    (
        Ask(
            "/system/resource",
            (
                Table(
                    metrics=(
                        Metric(
                            "uptime",
                            "system_uptime",
                            "Seconds since the router started",
                            parse=value_parser.seconds,
                        ),
                        Metric("free-memory", "system_free_memory", "Free memory in bytes"),
                        Metric("total-memory", "system_total_memory", "Memory in bytes"),
                        Metric("free-hdd-space", "system_free_hdd_space", "Free storage in bytes"),
                        Metric("total-hdd-space", "system_total_hdd_space", "Storage in bytes"),
                        Metric("cpu-load", "system_cpu_load", "Processor load in percent"),
                        Metric("cpu-count", "system_cpu_count", "Number of processors"),
                        Metric("cpu-frequency", "system_cpu_frequency", "Processor clock in MHz"),
                        Metric(
                            "bad-blocks",
                            "system_bad_blocks",
                            "Bad blocks of the storage in percent",
                        ),
                    ),
                    info=Info(
                        "system_info",
                        "What the router is: hardware and software",
                        same("version", "board-name", "platform", "architecture-name", "cpu"),
                    ),
                ),
            ),
        ),
    ),
)

IDENTITY = Family(
    "identity",
    "the router's name",
    (
        Ask(
            "/system/identity",
            (Table(info=Info("system_identity_info", "How the router is called", same("name"))),),
        ),
    ),
)

ROUTERBOARD = Family(
    "routerboard",
    "model, serial number, firmware of the board",
    (
        Ask(
            "/system/routerboard",
            (
                Table(
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
                        same(
                            "routerboard",
                            "model",
                            "serial-number",
                            "firmware-type",
                            "factory-firmware",
                            "current-firmware",
                            "upgrade-firmware",
                        ),
                    ),
                    reshape=row_transforms.newer("current-firmware", "upgrade-firmware"),
                    made=("newer",),
                ),
            ),
        ),
    ),
    every_s=3600,
)


def _sensor(property_: str, name: str, help_: str) -> Metric:
    return Metric(property_, f"system_{name}", help_, parse=value_parser.quantity)


def _supply(number: int) -> tuple[Metric, ...]:
    return (
        _sensor(f"psu{number}-voltage", f"psu{number}_voltage", f"Power supply {number}, volts"),
        _sensor(f"psu{number}-current", f"psu{number}_current", f"Power supply {number}, amperes"),
        Metric(
            f"psu{number}-state",
            f"system_psu{number}_state",
            f"Does power supply {number} work? 1 yes, 0 no",
            parse=value_parser.is_("ok", "true", "yes"),
        ),
    )


_HEALTH = Table(
    metrics=(
        _sensor("voltage", "routerboard_voltage", "Supply voltage in volts"),
        _sensor(
            "temperature", "routerboard_temperature", "Temperature of the board in degrees Celsius"
        ),
        _sensor("phy-temperature", "phy_temperature", "Temperature of the PHY in degrees Celsius"),
        _sensor(
            "cpu-temperature", "cpu_temperature", "Temperature of the processor in degrees Celsius"
        ),
        _sensor(
            "switch-temperature",
            "switch_temperature",
            "Temperature of the switch chip in degrees Celsius",
        ),
        _sensor("fan1-speed", "fan_one_speed", "Fan 1, revolutions per minute"),
        _sensor("fan2-speed", "fan_two_speed", "Fan 2, revolutions per minute"),
        _sensor("fan3-speed", "fan_three_speed", "Fan 3, revolutions per minute"),
        _sensor("fan4-speed", "fan_four_speed", "Fan 4, revolutions per minute"),
        _sensor("power-consumption", "power_consumption", "Power taken in watts"),
        _sensor(
            "board-temperature1",
            "board_temperature1",
            "Temperature of board sensor 1 in degrees Celsius",
        ),
        _sensor(
            "board-temperature2",
            "board_temperature2",
            "Temperature of board sensor 2 in degrees Celsius",
        ),
        *_supply(1),
        *_supply(2),
        _sensor(
            "poe-out-consumption", "poe_out_consumption", "Power given to PoE devices in watts"
        ),
        _sensor("jack-voltage", "jack_voltage", "Voltage at the jack"),
        _sensor("2pin-voltage", "2pin_voltage", "Voltage at the 2-pin connector"),
        _sensor("poe-in-voltage", "poe_in_voltage", "Voltage of PoE in"),
    ),
    reshape=row_transforms.sensors,
    reads=("name", "value"),
)

HEALTH = Family(
    "health", "voltages, temperatures, fans, power supplies", (Ask("/system/health", (_HEALTH,)),)
)

PACKAGES = Family(
    "packages",
    "installed packages, and whether there is a newer version",
    (
        Ask(
            "/system/package",
            (
                Table(
                    labels=same("name"),
                    info=Info(
                        "installed_packages_info",
                        "An installed package",
                        same("version", "build-time", "disabled"),
                    ),
                ),
            ),
        ),
        Ask(
            "/system/package/update",
            (
                Table(
                    metrics=(
                        flag(
                            "newer",
                            "system_update_available",
                            "Did the router find a newer version?",
                        ),
                    ),
                    info=Info(
                        "system_update_info",
                        "Versions",
                        same("channel", "installed-version", "latest-version"),
                    ),
                    reshape=row_transforms.newer("installed-version", "latest-version"),
                    made=("newer",),
                ),
            ),
        ),
    ),
    every_s=3600,
)

USERS = Family(
    "users",
    "who is logged in",
    (
        Ask(
            "/user/active",
            (
                Table(
                    labels=same("name", "address", "via", "group"),
                    metrics=(
                        Metric(
                            "when",
                            "active_users_info",
                            "When the user logged in, in the router's time, as seconds since 1970",
                            parse=value_parser.instant,
                        ),
                    ),
                ),
            ),
        ),
    ),
)

CERTIFICATES = Family(
    "certificates",
    "when certificates end",
    (
        Ask(
            "/certificate",
            (
                Table(
                    labels=same("name"),
                    metrics=(
                        Metric(
                            "invalid-after",
                            "certificate_expiration_timestamp_seconds",
                            "When the certificate ends, in seconds since 1970",
                            parse=value_parser.instant,
                        ),
                    ),
                    info=Info(
                        "certificate_info",
                        "A certificate of the router",
                        same(
                            "digest-algorithm",
                            "key-type",
                            "country",
                            "state",
                            "locality",
                            "organization",
                            "common-name",
                            "key-size",
                            "subject-alt-name",
                            "days-valid",
                            "trusted",
                            "key-usage",
                            "ca",
                            "serial-number",
                            "fingerprint",
                            "akid",
                            "skid",
                            "invalid-before",
                            "invalid-after",
                        ),
                    ),
                ),
            ),
        ),
    ),
    every_s=3600,
)

CONTAINERS = Family(
    "containers",
    "containers and their state",
    (
        Ask(
            "/container",
            (
                Table(
                    labels=same("name"),
                    info=Info(
                        "container_info", "A container", same("repo", "os", "arch", "status")
                    ),
                ),
            ),
        ),
    ),
)

CLOUD = Family(
    "cloud",
    "the router's public address, as MikroTik's cloud sees it",
    (
        Ask(
            "/ip/cloud",
            (
                Table(
                    info=Info(
                        "public_ip_address_info",
                        "The public address of the router",
                        same("public-address", "public-address-ipv6", "dns-name"),
                    )
                ),
            ),
        ),
    ),
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
