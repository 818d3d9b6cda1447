"""Compiles the modules that are worth it, and fetches the library that makes plots zoom.

The same modules are plain Python. Without a compiler the build goes on without them, and poller
runs as before: a repeat poll of SNMP v2c then costs about twice the CPU. Without npm or a network
the pages have the pictures of the server, which links zoom.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Each has a file of types, <name>.pxd, beside it.
COMPILED = ("poller.collectors.snmp.wire.response_values",)
#: The sources check every index themselves.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "annotation_typing": False,
}
#: The package of npm and its integrity: the hash of the whole package, as lock files have it.
LIBRARY = "uplot@1.6.32"
INTEGRITY = (
    "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy"
    "+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
)
#: Its files, the place of each in the tree, and the hash of what is there.
LIBRARY_FILES = {
    "package/dist/uPlot.iife.min.js": (
        "poller/web/static/uPlot.iife.min.js",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    ),
    "package/dist/uPlot.min.css": (
        "poller/web/static/uPlot.min.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
    "package/LICENSE": (
        "poller/web/licenses/uPlot.txt",
        "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    ),
}
FETCH_S = 60


class CompiledModules(BuildHookInterface[Any]):
    """Compiles modules beside their sources, and adds them to a wheel that is not editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        fetched = self._fetch(root)
        if version != "editable":
            for path in fetched:
                build_data["force_include"][str(root / path)] = path
        try:
            made = _compile(root)
        except (Exception, SystemExit) as error:  # noqa: BLE001  door: Cython and the compiler
            self.app.display_warning(f"poller is installed without compiled modules: {error}")
            return
        if version == "editable":
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in made:
            name = path.relative_to(root).as_posix()
            build_data["force_include"][str(path)] = name

    def _fetch(self, root: Path) -> list[str]:
        """Return the files of the library; none if they cannot be fetched."""
        try:
            return fetch_library(root)
        except (
            OSError,
            ValueError,
            KeyError,
            tarfile.TarError,
            subprocess.SubprocessError,
        ) as error:
            self.app.display_warning(f"poller is installed without plots that zoom: {error}")
            return []


def fetch_library(root: Path) -> list[str]:
    """Put the library into the tree unless it is there; return the places of its files.

    Raises ValueError for a package or a file of another content.
    """
    places = [place for place, _ in LIBRARY_FILES.values()]
    if all(_has(root / place, digest) for place, digest in LIBRARY_FILES.values()):
        return places
    with tempfile.TemporaryDirectory() as scratch:
        command = ["npm", "pack", LIBRARY, "--silent", "--pack-destination", scratch]
        subprocess.run(command, cwd=scratch, check=True, timeout=FETCH_S, capture_output=True)
        [package] = Path(scratch).glob("*.tgz")
        _check_integrity(package.read_bytes())
        with tarfile.open(package) as archive:
            for name, (place, digest) in LIBRARY_FILES.items():
                file = archive.extractfile(name)
                body = file.read() if file else b""
                if hashlib.sha256(body).hexdigest() != digest:
                    raise ValueError(f"{name} of {LIBRARY} is another file")
                (root / place).parent.mkdir(exist_ok=True)
                (root / place).write_bytes(body)
    return places


def _has(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _check_integrity(package: bytes) -> None:
    found = base64.b64encode(hashlib.sha512(package).digest()).decode()
    if f"sha512-{found}" != INTEGRITY:
        raise ValueError(f"{LIBRARY} has another integrity than the one that is pinned")


def _compile(root: Path) -> list[Path]:
    """Compile in place, so that a checkout that is installed editable uses the result too."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    with tempfile.TemporaryDirectory() as scratch:
        modules = []
        for name in COMPILED:
            source = root / (name.replace(".", "/") + ".py")
            modules.append(Extension(name, [str(source)]))
        compiled = cythonize(
            modules,
            build_dir=scratch,
            compiler_directives=DIRECTIVES,
            include_path=[str(root)],
            quiet=True,
            force=True,
        )
        command = build_ext(Distribution({"name": "poller", "ext_modules": compiled}))
        command.build_lib = str(root)
        command.build_temp = scratch
        command.ensure_finalized()
        command.run()
        return [Path(path) for path in command.get_outputs()]


if __name__ == "__main__":
    tree = Path(__file__).parent
    print(*_compile(tree), *fetch_library(tree), sep="\n", file=sys.stderr)
