"""`poller plugin new`: a package with a collector that installs, passes its tests and polls, before the first edit."""

from __future__ import annotations

import keyword
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from poller import errors
from poller.cli.output import render
from poller.cli.output.render import Json

app = typer.Typer(no_args_is_help=True, help="Write a collector of your own.")

#: Part of a metric's name, a module, a distribution and a queue; short enough for all of them.
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
LONGEST = 40
#: Where the routers of `poller up --demo` listen.
PORT = 18728

#: Template to file; `{package}` and `{module}` are filled in.
FILES = {
    "pyproject.toml.jinja": "pyproject.toml",
    "README.md.jinja": "README.md",
    "gitignore.jinja": ".gitignore",
    "package.py.jinja": "{package}/__init__.py",
    "collector.py.jinja": "{package}/collector.py",
    "test_collector.py.jinja": "tests/test_{module}.py",
}


@app.command("new")
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What targets will call it: --collector NAME.")
    ],
    path: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where to put it.", show_default="./NAME"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a package with one collector, its test and its README. Nothing that exists is touched."""
    words = _words(name)
    place = path or Path(name)
    files = write(place, words)
    body = {"name": name, "path": str(place), "files": files, "distribution": words["distribution"]}
    text = f"wrote {len(files)} files to {place}"
    # A word without a slash would be the name of somebody else's package.
    here = place if place.is_absolute() else f"./{place}"
    render.changed(
        text, "poller.plugin.new/1", body, as_json, f"pip install {shlex.quote(str(here))}"
    )


def write(place: Path, words: Mapping[str, str]) -> list[str]:
    """The files of the package, relative to the place. Raises AlreadyExists, InvalidInput; then nothing was made."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("poller.cli", "plugin_template"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  no HTML, and every word was checked
        keep_trailing_newline=True,
    )
    texts = {
        target.format(**words): templates.get_template(source).render(words)
        for source, target in FILES.items()
    }
    try:
        place.mkdir(parents=True)
        for file, text in texts.items():
            (place / file).parent.mkdir(exist_ok=True)
            (place / file).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise errors.AlreadyExists(
            f"{place} exists already; nothing was written", hint="--path DIRECTORY"
        ) from None
    except OSError as error:
        raise errors.InvalidInput(f"{place}: {error.strerror}", hint="--path DIRECTORY") from None
    return sorted(texts)


def _words(name: str) -> dict[str, str]:
    """What stands in the templates. Raises InvalidInput for a name that cannot be all of these."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        shown = name if name.isprintable() else ascii(name)
        raise errors.InvalidInput(
            f'"{shown}" cannot be the name of a collector',
            cause=f"it takes small letters, digits, - and _ between them, a letter first, at most {LONGEST} in all",
            hint=f"poller plugin new {_nearest(name)}",
        )
    _refuse_taken(name)
    module = name.replace("-", "_")
    return {
        "name": name,
        "distribution": f"poller-{name.replace('_', '-')}",
        "package": f"poller_{module}",
        "module": module,
        "metric": module,
        "class_name": _class_name(module),
        "port": str(PORT),
    }


def _class_name(module: str) -> str:
    name = "".join(part.capitalize() for part in module.split("_"))
    return f"{name}Collector" if keyword.iskeyword(name) else name  # None, True, False


def _refuse_taken(name: str) -> None:
    from poller import plugins

    for point in plugins.points("poller.collectors")[0]:
        if point.name == name:
            raise errors.AlreadyExists(
                f'there is a collector named "{name}" already',
                plugins.origin(point),
                hint="poller collectors",
            )


def _nearest(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", name.lower())
    text = "-".join(words).lstrip("0123456789-")[:LONGEST].strip("-")
    return text or "olt"
