"""The logins of an `snmp.yml` by the names under which they become credentials."""

from __future__ import annotations

from collections.abc import Mapping

from poller.collectors.credentials import Community
from poller.collectors.snmp.modules.file_logins import Auth
from poller.collectors.snmp.modules.module_files import Library
from poller.domain.inventory import naming
from poller.domain.migration import snmp_jobs
from poller.domain.migration.exporter_plan import AuthUse
from poller.domain.migration.snmp_jobs import ScrapedTarget

#: The login of a scrape that names none; files that lack it mean the same.
_PUBLIC = Auth(2, Community.from_fields({"community": "public"}))


class Logins:
    """Finds the login of each target. In the flat format a module has it, else `auth` names it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._is_flat = all(file.flat for file in library.files)
        self._by_name: dict[str, Auth] = {}

    @property
    def by_name(self) -> Mapping[str, Auth]:
        """The logins that targets use."""
        return self._by_name

    @property
    def uses(self) -> dict[str, AuthUse]:
        """How targets use them."""
        return {
            name: AuthUse(name, "1" if auth.version == 1 else "", auth.context)
            for name, auth in self._by_name.items()
        }

    def name_of(self, target: ScrapedTarget) -> str | None:
        """Return the name of the target's login; None if the file does not have it.

        Raises ConfigError for a login that is wrong, InvalidInput for a name that is none.
        """
        if self._is_flat:
            return self._flat_name(target.modules[0])
        if target.auth in self._library.auth_names():
            auth = self._library.auth(target.auth)
        elif target.auth == snmp_jobs.DEFAULT_AUTH:
            auth = _PUBLIC
        else:
            return None
        name = naming.checked_name(target.auth, "auth name")
        self._by_name[name] = auth
        return name

    def _flat_name(self, module: str) -> str:
        """Return one name for all modules with the same login."""
        auth = self._library.auth(module) if module in self._library.auth_names() else _PUBLIC
        if auth == _PUBLIC:
            self._by_name[snmp_jobs.DEFAULT_AUTH] = auth
            return snmp_jobs.DEFAULT_AUTH
        for name, known in self._by_name.items():
            if known == auth:
                return name
        name = naming.checked_name(f"snmp-{module}", "auth name")
        self._by_name[name] = auth
        return name
