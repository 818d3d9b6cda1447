"""Sources of settings below the environment: secret files, `poller.toml`, a running `poller up`.

This module knows names and values as written; types and bounds are in the `*_fields` modules.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from poller import errors
from poller.settings import toml_lines

PREFIX = "POLLER_"
#: Variables that single commands read and that are no settings.
OTHER_NAMES = {
    "POLLER_CONFIG": "path of poller.toml",
    "POLLER_COLLECT_SECRET": "the secret of `poller collect`",
    "POLLER_ACCESSIBLE": "plain terminal output",
}
SECRETS = (
    "redis_url",
    "database_url",
    "secret_key",
    "flower_basic_auth",
    "metrics_token",
    "sentry_dsn",
    "oidc_client_secret",
    "heartbeat_url",
)
#: The origin of a value that no source has.
DEFAULT = "default"
RUN_FILE = "run.json"
HOME = ".poller"
CONFIG = "poller.toml"
HERE = Path()
SQLITE = "sqlite:///"
_TABLES_WITH_FILES = ("sink", "receiver")
_SINK_TABLE = 'the table of a sink is [sink.NAME]; sinks = ["sql", "NAME"] puts it to use'


def layers(environ: Mapping[str, str], fields: Collection[str]) -> list[tuple[str, dict[str, Any]]]:
    """The sources below the environment, strongest first: (name, values)."""
    base = _base_directory(environ)
    config = config_file(environ)
    config_is_named = "POLLER_CONFIG" in environ
    toml = _read_toml(config, fields, required=config_is_named)
    if not config_is_named:
        toml = _relative_to(base, toml)
    toml = _with_files(config, toml)

    home = Path(environ.get("POLLER_HOME") or toml.get("home") or _owned(base / HOME))
    home = home.expanduser()
    found_above = {"home": home} if base != HERE else {}

    return [
        ("file named by POLLER_*_FILE", _read_secret_files(environ)),
        (str(config), toml),
        (f"the poller up running on {home}", _read_run_file(home, fields)),
        (f"found in {base}", found_above),
    ]


def config_file(environ: Mapping[str, str]) -> Path:
    """The path of poller.toml, existing or not; absolute if found above the working directory."""
    if "POLLER_CONFIG" in environ:
        return Path(environ["POLLER_CONFIG"])
    return _owned(_base_directory(environ) / CONFIG)


def _base_directory(environ: Mapping[str, str]) -> Path:
    """The nearest directory, from the working directory up, with a home or a poller.toml.

    The working directory if there is none, or if POLLER_HOME names a home.
    """
    if "POLLER_HOME" in environ:
        return HERE
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return HERE

    any_config = "POLLER_CONFIG" not in environ
    if _is_base(here, any_config):
        return HERE
    for directory in here.parents:
        if _is_base(directory, any_config):
            return directory
    return HERE


def _is_base(directory: Path, any_config: bool) -> bool:
    """True for a directory with a home or, if `any_config`, with a poller.toml."""
    if os.path.isdir(directory / HOME):
        return True
    return any_config and os.path.isfile(directory / CONFIG)


def _owned(path: Path) -> Path:
    """Refuse a path above the working directory that belongs to another user, except root.

    Otherwise any user who may write to /tmp could choose our servers.
    """
    with suppress(FileNotFoundError):
        if path.is_absolute() and path.stat().st_uid not in (os.geteuid(), 0):
            name = "POLLER_CONFIG" if path.name == CONFIG else "POLLER_HOME"
            raise errors.InvalidSetting(
                f"{path} belongs to another user", hint=f"set {name}={path} to use it"
            )
    return path


def _relative_to(base: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Resolve the paths of a poller.toml that was found in a directory above."""
    if base == HERE:
        return values

    resolved = dict(values)
    home = str(values.get("home", ""))
    if home:
        resolved["home"] = str(base / Path(home).expanduser())

    url = str(values.get("database_url", ""))
    if url.startswith(SQLITE):
        path = base / url.removeprefix(SQLITE)
        resolved["database_url"] = f"{SQLITE}{path}"
    return resolved


def _with_files(config: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Resolve the files that tables name: they are beside the poller.toml."""
    base = config.absolute().parent
    resolved = dict(values)
    for key in _TABLES_WITH_FILES:
        tables = values.get(key)
        if isinstance(tables, dict):
            resolved[key] = {name: _resolved(base, table) for name, table in tables.items()}
    return resolved


def _resolved(base: Path, table: Any) -> Any:
    """Resolve password_file and its kin, and every file of a table such as header_files."""
    if not isinstance(table, dict):
        return table
    resolved = {}
    for key, value in table.items():
        resolved[key] = value
        if key.endswith("_files") and isinstance(value, dict):
            resolved[key] = {name: _file(base, each) for name, each in value.items()}
        elif key.endswith("_file"):
            resolved[key] = _file(base, value)
    return resolved


def _file(base: Path, value: Any) -> Any:
    return str(base / Path(value).expanduser()) if isinstance(value, str) and value else value


def origins_of(environ: Mapping[str, str], fields: Collection[str]) -> dict[str, str]:
    """The source of each field's value, in words, with the line of a poller.toml."""
    origins = dict.fromkeys(fields, DEFAULT)
    config = config_file(environ)
    lines = toml_lines.of_file(config)

    weakest_first = reversed(layers(environ, fields))
    for origin, values in weakest_first:
        for name in values:
            if name in origins:
                origins[name] = origin.replace("*", name.upper())
            if name in lines and origin == str(config):
                origins[name] = f"{config}, line {lines[name]}"

    for name in fields:
        variable = PREFIX + name.upper()
        if variable in environ:
            origins[name] = f"environment {variable}"
    return origins


def _read_toml(path: Path, fields: Collection[str], required: bool) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        if required:
            raise errors.InvalidSetting(
                f"POLLER_CONFIG names {path}, which does not exist"
            ) from None
        return {}
    except (OSError, ValueError) as error:
        hint = _SINK_TABLE if "'sinks'" in str(error) else ""
        raise errors.InvalidSetting(f"{path}: {error}", hint=hint) from None
    if isinstance(values.get("sinks"), dict):
        raise errors.InvalidSetting(f"{path}: sinks is a list of names", hint=_SINK_TABLE)
    for key in values:
        if key not in fields:
            raise _unknown(f'{path}: unknown key "{key}"', key, fields)
    return values


def _read_secret_files(environ: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for field in SECRETS:
        variable = f"{PREFIX}{field.upper()}_FILE"
        path = environ.get(variable)
        if path:
            try:
                values[field] = Path(path).read_text().strip()
            except OSError as error:
                raise errors.InvalidSetting(f"{variable}: {error}") from None
    return values


def _read_run_file(home: Path, fields: Collection[str]) -> dict[str, Any]:
    """The settings of a running `poller up`, so that a second terminal needs no variables."""
    try:
        text = (home / RUN_FILE).read_text()
    except PermissionError:
        raise errors.InvalidSetting(
            f"home: you may not read {home.absolute()}",
            hint="become its owner, or set POLLER_HOME to a directory of your own",
        ) from None
    except OSError:
        return {}

    try:
        run = json.loads(text)
        os.kill(int(run["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {name: value for name, value in run.get("settings", {}).items() if name in fields}


def refuse_unknown(environ: Mapping[str, str], fields: Collection[str]) -> None:
    """Raise InvalidSetting for the first POLLER_* variable that nothing reads."""
    variables = [PREFIX + name.upper() for name in fields]
    files = [f"{PREFIX}{name.upper()}_FILE" for name in SECRETS]
    names = [*variables, *files, *OTHER_NAMES]

    for name in environ:
        is_ours = name.startswith(PREFIX)
        if is_ours and name not in names:
            raise _unknown(f"unknown environment variable {name}", name, names)


def _unknown(message: str, name: str, names: Iterable[str]) -> errors.InvalidSetting:
    """An error with the most similar name as a hint."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.4)
    if near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = "`poller settings` lists all names"
    return errors.InvalidSetting(message, hint=hint)
