"""`poller plugin new`: writes a package with a collector that installs and polls."""

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

#: The name becomes part of a metric, a module, a distribution and a queue; it fits all of them.
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
LONGEST = 40
#: The port of the routers of `poller up --demo`.
PORT = 18728

#: Templates and the files they become.
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
        str, typer.Argument(metavar="NAME", help="The collector's name, as in --collector NAME.")
    ],
    path: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where to put it.", show_default="./NAME"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a package with one collector, its test and its README.

    Existing files are never changed.
    """
    words = _words(name)
    folder = path or Path(name)
    files = write(folder, words)
    text = f"wrote {len(files)} files to {folder}"
    body = {
        "name": name,
        "path": str(folder),
        "files": files,
        "distribution": words["distribution"],
    }
    # Without a slash pip would install a package of that name from the index.
    requirement = str(folder) if folder.is_absolute() else f"./{folder}"
    then = f"pip install {shlex.quote(requirement)}"
    render.changed(text, "poller.plugin.new/1", body, as_json, then)


def write(folder: Path, words: Mapping[str, str]) -> list[str]:
    """Write the package's files and return their paths in the folder.

    Raises AlreadyExists or InvalidInput; then no file is written.
    """
    texts = _rendered(words)
    try:
        folder.mkdir(parents=True)
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except FileExistsError:
        raise errors.AlreadyExists(
            f"{folder} exists already; nothing was written", hint="--path DIRECTORY"
        ) from None
    except OSError as error:
        raise errors.InvalidInput(f"{folder}: {error.strerror}", hint="--path DIRECTORY") from None

    return sorted(texts)


def _rendered(words: Mapping[str, str]) -> dict[str, str]:
    """The text of each file, by its path in the package."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("poller.cli", "plugin_template"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  no HTML, and every word is checked
        keep_trailing_newline=True,
    )

    texts = {}
    for template, path in FILES.items():
        texts[path.format(**words)] = templates.get_template(template).render(words)

    return texts


def _words(name: str) -> dict[str, str]:
    """The words for the templates.

    Raises InvalidInput for an unusable name, AlreadyExists for a taken one.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        shown = name if name.isprintable() else ascii(name)
        raise errors.InvalidInput(
            f'"{shown}" cannot be the name of a collector',
            cause="it takes small letters, digits, - and _ between them, a letter first, "
            f"at most {LONGEST} in all",
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
    """`AcmeOlt` for `acme_olt`; never a keyword of Python."""
    name = "".join(part.capitalize() for part in module.split("_"))
    return f"{name}Collector" if keyword.iskeyword(name) else name  # None, True, False


def _refuse_taken(name: str) -> None:
    """Raise AlreadyExists if an installed collector has this name."""
    from poller import plugins

    for point in plugins.points("poller.collectors")[0]:
        if point.name == name:
            raise errors.AlreadyExists(
                f'there is a collector named "{name}" already',
                plugins.origin(point),
                hint="poller collectors",
            )


def _nearest(name: str) -> str:
    """A usable name that is close to the refused one."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    text = "-".join(words).lstrip("0123456789-")[:LONGEST].strip("-")
    return text or "olt"
