"""The modules of `/snmp` as a document, without the logins, and a check of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from poller.collectors.snmp.modules import module_catalog, module_files

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Fields of a module of the flat format that belong to its login.
_LOGIN = ("auth", "version")


class _Dumper(yaml.SafeDumper):
    """Writes shared parts in full, as people read them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def document(services: Services) -> str:
    """Return the modules in snmp_exporter's format. Raises ConfigError for a broken file.

    Logins are left out, also their names: credentials are in the vault.
    """
    modules: dict[str, Any] = {}
    config = services.settings.snmp_config
    for file in module_catalog.built_in_files():
        modules.update(file.modules)
    for file in module_files.library(config).files if config else ():
        modules.update(file.modules)
    shown = {name: _without_login(body) for name, body in sorted(modules.items())}
    text: str = yaml.dump({"modules": shown}, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def check(services: Services) -> int:
    """Read the files again if they were edited, and parse every module. Returns how many there are.

    Raises ConfigError that names the file, the module and the field.
    """
    return len(module_catalog.modules(services.settings.snmp_config))


def _without_login(body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    return {key: value for key, value in body.items() if key not in _LOGIN}
