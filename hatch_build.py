"""Compiles the modules that are worth it, where the machine has a C compiler and Cython.

The same files are plain Python. Without a compiler the build goes on without them, and poller runs
as before: a repeat poll of SNMP v2c then costs about twice the CPU.
"""

from __future__ import annotations

import sys
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


class CompiledModules(BuildHookInterface[Any]):
    """Compiles modules beside their sources, and adds them to a wheel that is not editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
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
    print(*_compile(Path(__file__).parent), sep="\n", file=sys.stderr)
