"""Where settings stand besides the environment: secret files, `poller.toml`, and a `poller up` that runs on this home.

What each setting means is in settings/fields.py; here are only names, and values as they were written.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from poller import errors

PREFIX = "POLLER_"
#: Names that are read by one command and are no settings.
OTHER_NAMES = {
    "POLLER_CONFIG": "path of poller.toml",
    "POLLER_COLLECT_SECRET": "the secret of `poller collect`",
    "POLLER_ACCESSIBLE": "plain terminal output",
}
SECRETS = ("redis_url", "database_url", "secret_key", "flower_basic_auth", "sentry_dsn")
RUN_FILE = "run.json"
HOME, CONFIG, HERE = ".poller", "poller.toml", Path()
SQLITE = "sqlite:///"


def layers(environ: Mapping[str, str], fields: Collection[str]) -> list[tuple[str, dict[str, Any]]]:
    """The sources below the environment, strongest first, each with its name."""
    place = _place(environ)
    config = config_file(environ)
    toml = _read_toml(config, fields, required="POLLER_CONFIG" in environ)
    if "POLLER_CONFIG" not in environ:
        toml = _as_seen_from(place, toml)
    home = Path(environ.get("POLLER_HOME") or toml.get("home") or _ours(place / HOME)).expanduser()
    return [
        ("file named by POLLER_*_FILE", _read_secret_files(environ)),
        (str(config), toml),
        (f"the poller up running on {home}", _read_run_file(home, fields)),
        (f"found in {place}", {"home": home} if place != HERE else {}),
    ]


def config_file(environ: Mapping[str, str]) -> Path:
    """The poller.toml, whether it exists or not; an absolute path if it was found above the working directory."""
    return (
        Path(environ["POLLER_CONFIG"])
        if "POLLER_CONFIG" in environ
        else _ours(_place(environ) / CONFIG)
    )


def _place(environ: Mapping[str, str]) -> Path:
    """The nearest directory, from here up, that holds a home or a poller.toml, as git finds its own; else here.

    Who names a home is not helped: nothing is looked for.
    """
    sought = [(HOME, os.path.isdir)] + (
        [] if "POLLER_CONFIG" in environ else [(CONFIG, os.path.isfile)]
    )
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return HERE
    if "POLLER_HOME" not in environ:
        for place in here.parents if not _holds(here, sought) else ():
            if _holds(place, sought):
                return place
    return HERE


def _holds(place: Path, sought: Iterable[tuple[str, Callable[[Path], bool]]]) -> bool:
    return any(is_one(place / name) for name, is_one in sought)


def _ours(path: Path) -> Path:
    """What was found above must be ours, or root's: whoever may write to /tmp would choose our servers for us."""
    with suppress(FileNotFoundError):
        if path.is_absolute() and path.stat().st_uid not in (os.geteuid(), 0):
            name = "POLLER_CONFIG" if path.name == CONFIG else "POLLER_HOME"
            raise errors.InvalidSetting(
                f"{path} belongs to another user", hint=f"set {name}={path} to use it"
            )
    return path


def _as_seen_from(place: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Paths in a file that was found above are meant from where it is."""
    home, url = str(values.get("home", "")), str(values.get("database_url", ""))
    if place != HERE and home:
        values = {**values, "home": str(place / Path(home).expanduser())}
    if place != HERE and url.startswith(SQLITE):
        values = {**values, "database_url": SQLITE + str(place / url.removeprefix(SQLITE))}
    return values


def origins_of(environ: Mapping[str, str], fields: Collection[str]) -> dict[str, str]:
    """Where the value of each field comes from, in words."""
    found = dict.fromkeys(fields, "default")
    for origin, values in reversed(layers(environ, fields)):
        found.update({name: origin for name in values if name in found})
    found.update(
        {n: f"environment {PREFIX}{n.upper()}" for n in found if PREFIX + n.upper() in environ}
    )
    return found


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
        raise errors.InvalidSetting(f"{path}: {error}") from None
    _refuse(values, fields, lambda key: f'{path}: unknown key "{key}"')
    return values


def _read_secret_files(environ: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for field in SECRETS:
        path = environ.get(f"{PREFIX}{field.upper()}_FILE")
        if path:
            try:
                values[field] = Path(path).read_text().strip()
            except OSError as error:
                raise errors.InvalidSetting(f"{PREFIX}{field.upper()}_FILE: {error}") from None
    return values


def _read_run_file(home: Path, fields: Collection[str]) -> dict[str, Any]:
    """What a living `poller up` on this home offers, so that a second terminal just works."""
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
    """A typo never passes silently. Raises InvalidSetting."""
    names = [PREFIX + name.upper() for name in fields]
    files = [f"{PREFIX}{name.upper()}_FILE" for name in SECRETS]
    given = [name for name in environ if name.startswith(PREFIX)]
    _refuse(
        given, [*names, *files, *OTHER_NAMES], lambda name: f"unknown environment variable {name}"
    )


def _refuse(given: Iterable[str], known: Iterable[str], say: Any) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else "`poller settings` lists all names"
            raise errors.InvalidSetting(say(name), hint=hint)
