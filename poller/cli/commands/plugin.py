"""`poller plugin new`: writes a package with a collector or a job that installs and runs."""

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

app = typer.Typer(no_args_is_help=True, help="Write a collector or a job of your own.")

#: The name becomes part of a metric, a module, a distribution and a queue; it fits all of them.
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
LONGEST = 40
#: The port of the routers of `poller up --demo`.
PORT = 18728

#: Templates and the files they become, for each kind of plugin.
FILES = {
    "collector": {
        "pyproject.toml.jinja": "pyproject.toml",
        "README.md.jinja": "README.md",
        "gitignore.jinja": ".gitignore",
        "package.py.jinja": "{package}/__init__.py",
        "collector.py.jinja": "{package}/collector.py",
        "test_collector.py.jinja": "tests/test_{module}.py",
    },
    "job": {
        "pyproject.toml.jinja": "pyproject.toml",
        "job_README.md.jinja": "README.md",
        "gitignore.jinja": ".gitignore",
        "job_package.py.jinja": "{package}/__init__.py",
        "job.py.jinja": "{package}/job.py",
        "test_job.py.jinja": "tests/test_{module}.py",
    },
}
#: What an entry point of each kind is, for the comment in pyproject.toml.
ENTRY_POINTS = {
    "collector": "the name that targets use, and the class",
    "job": "the name of the job, and the function that `api.job` decorates",
}


@app.command("new")
def new(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of the collector, or of the job."),
    ],
    job: Annotated[bool, typer.Option("--job", help="Write a job instead of a collector.")] = False,
    path: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where to put it.", show_default="./NAME"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a package with one collector or one job, its test and its README.

    Existing files are never changed.
    """
    words = _words(name, "job" if job else "collector")
    folder = path or Path(name)
    files = write(folder, words)
    text = f"wrote {len(files)} files to {folder}"
    body = {
        "name": name,
        "kind": words["kind"],
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
    for template, path in FILES[words["kind"]].items():
        texts[path.format(**words)] = templates.get_template(template).render(words)

    return texts


def _words(name: str, kind: str) -> dict[str, str]:
    """The words for the templates.

    Raises InvalidInput for an unusable name, AlreadyExists for a taken one.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        shown = name if name.isprintable() else ascii(name)
        raise errors.InvalidInput(
            f'"{shown}" cannot be the name of a {kind}',
            cause="it takes small letters, digits, - and _ between them, a letter first, "
            f"at most {LONGEST} in all",
            hint=f"poller plugin new {_nearest(name)}" + (" --job" if kind == "job" else ""),
        )

    _refuse_taken(name, kind)
    module = name.replace("-", "_")
    class_name = _class_name(module)
    return {
        "name": name,
        "kind": kind,
        "entry_point": ENTRY_POINTS[kind],
        "object": "run" if kind == "job" else class_name,
        "distribution": f"poller-{name.replace('_', '-')}",
        "package": f"poller_{module}",
        "module": module,
        "metric": module,
        "class_name": class_name,
        "port": str(PORT),
    }


def _class_name(module: str) -> str:
    """`AcmeOlt` for `acme_olt`; never a keyword of Python."""
    name = "".join(part.capitalize() for part in module.split("_"))
    return f"{name}Collector" if keyword.iskeyword(name) else name  # None, True, False


def _refuse_taken(name: str, kind: str) -> None:
    """Raise AlreadyExists if an installed plugin of this kind has this name."""
    from poller import plugins

    for point in plugins.points(f"poller.{kind}s")[0]:
        if point.name == name:
            raise errors.AlreadyExists(
                f'there is a {kind} named "{name}" already',
                plugins.origin(point),
                hint=f"poller {kind}s",
            )


def _nearest(name: str) -> str:
    """A usable name that is close to the refused one."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    text = "-".join(words).lstrip("0123456789-")[:LONGEST].strip("-")
    return text or "olt"
