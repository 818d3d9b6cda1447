"""The `poller` program as a process: start-up, pipes, terminals, completion, signals."""

from __future__ import annotations

import os
import pty
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from poller import __version__ as version
from poller import bootstrap
from poller.db.inventory import inventory_feed

PROGRAM = [sys.executable, "-c", "from poller.cli.main import main; main()"]
READY_WITHIN_S = 20


@pytest.fixture
def environment(home: Path, free_port: int) -> dict[str, str]:
    """The environment of a private home without Redis."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("POLLER_", "NO_COLOR", "FORCE_"))
    }
    return {
        **kept,
        "POLLER_HOME": str(home),
        "POLLER_REDIS_URL": f"redis://127.0.0.1:{free_port}/0",
        "TERM": "xterm",
    }


@pytest.fixture
def poller(
    environment: dict[str, str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *arguments], input=stdin, env={**environment, **more}, cwd=tmp_path,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run


Poller = Callable[..., subprocess.CompletedProcess[str]]


def test_help_loads_nothing_heavy(environment: dict[str, str], tmp_path: Path) -> None:
    """The help imports no broker, database or collector library."""
    code = (
        "import sys; from poller.cli import main; main.run(['--help']); "
        "heavy = ('celery', 'kombu', 'redis', 'sqlalchemy', 'pydantic', 'gufo', 'pysnmp', "
        "'fastapi', 'yaml'); print([m for m in heavy "
        "if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"
    for noun in ("device", "target", "credential", "db", "settings", "readings", "version"):
        assert re.search(rf"\b{noun}\b", done.stdout)


def test_help_is_quick(environment: dict[str, str], tmp_path: Path) -> None:
    """The best of five starts takes less than 0.4 s of CPU."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*PROGRAM, "--help"],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.4


def test_exit_codes_reach_the_shell(poller: Poller) -> None:
    """The exit code is 0 for success, 2 for usage, 3 for not found, 5 without a database."""
    assert poller("version").returncode == 0
    assert poller("nonsense").returncode == 2
    assert poller("device").returncode == 2
    assert poller("device", "list").returncode == 5
    assert poller("db", "upgrade").returncode == 0
    assert poller("device", "show", "nobody").returncode == 3


def test_a_closed_pipe_is_no_error(
    environment: dict[str, str], poller: Poller, tmp_path: Path
) -> None:
    """`poller device export | head -1` ends quietly with the shell's code for SIGPIPE."""
    lines = "\n".join(f"sw{number:05},192.0.2.1" for number in range(5_000))
    (tmp_path / "fleet.csv").write_text(f"name,address\n{lines}\n")
    assert poller("device", "import", "fleet.csv").returncode == 0
    process = subprocess.Popen([*PROGRAM, "device", "export"], env=environment, cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert error == b""


@pytest.mark.parametrize(
    "words", [["--help"], ["version"], ["device", "list", "--help"], ["settings"], ["nonsense"]]
)
def test_a_pipe_that_was_never_read_is_no_error(
    environment: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    """Results and errors alike end with exit code 141 and no output."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, *words],
        env=environment,
        cwd=tmp_path,
        stdout=writing,
        stderr=writing,
        timeout=60,
    )
    os.close(writing)
    assert done.returncode == 141


def test_the_version_is_an_option_and_a_command(poller: Poller) -> None:
    """The option prints one line, the command all versions."""
    done = poller("--version")
    assert (done.returncode, done.stdout) == (0, f"poller {version}\n")
    assert f"poller: {version}" in poller("version").stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("poller dev", {"device"}),
        ("poller device ", {"add", "import", "rm"}),
        ("poller device add --cre", {"--credential"}),
    ],
)
def test_bash_completes_commands_and_options(poller: Poller, line: str, expected: set[str]) -> None:
    """Completion reaches branches that are not imported yet."""
    done = poller(
        _POLLER_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" "))
    )
    assert expected <= set(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_can_be_shown(poller: Poller, shell: str) -> None:
    """Packagers and cautious users read the script before they install it."""
    done = poller(_POLLER_COMPLETE=f"source_{shell}")
    assert done.returncode == 0
    assert "_POLLER_COMPLETE" in done.stdout


def test_no_colour_codes_in_a_pipe_and_some_when_forced(poller: Poller) -> None:
    """A log file has no colour codes unless they are forced."""
    assert "\x1b[" not in poller("device", "show", "x").stderr
    assert "\x1b[" in poller("device", "show", "x", FORCE_COLOR="1").stderr
    assert "\x1b[" in poller("--color", "always", "device", "show", "x").stderr
    assert "\x1b[" not in poller("--color", "never", "device", "show", "x", FORCE_COLOR="1").stderr


class Terminal:
    """The program on a pseudo terminal."""

    def __init__(self, arguments: list[str], environment: dict[str, str], directory: Path) -> None:
        self.child, self.master = pty.fork()
        if self.child == 0:
            os.chdir(directory)
            os.execve(sys.executable, [*PROGRAM, *arguments], environment)
        self.seen = ""

    def expect(self, text: str) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while text not in self.seen:
            assert time.monotonic() < deadline, f"waited for {text!r}, saw {self.seen!r}"
            self._read(0.2)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            self._read(0.05)
            done, status = os.waitpid(self.child, os.WNOHANG)
            if done:
                self._read(0.05)
                os.close(self.master)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.child, signal.SIGKILL)
        pytest.fail(f"did not end; saw {self.seen!r}")

    def _read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # the program has closed its side
                time.sleep(0.01)


def test_a_secret_is_asked_for_without_echo(environment: dict[str, str], tmp_path: Path) -> None:
    """The typed secret does not appear on the screen, and is stored."""
    terminal = Terminal(["credential", "add", "c", "--kind", "login"], environment, tmp_path)
    terminal.expect("username:")
    terminal.type("admin\n")
    terminal.expect("password:")
    terminal.type("hunter22\n")
    assert terminal.end() == 0
    assert "stored credential c (login)" in terminal.seen
    assert "hunter22" not in terminal.seen
    services = bootstrap.services()
    sealed = inventory_feed.credential(services.engine, 1)
    assert sealed is not None
    assert '"hunter22"' in services.keyring.open(sealed.envelope, "c", "login")


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 2, 1), ("\n", 2, 1)])
def test_removal_is_confirmed_on_a_terminal(
    environment: dict[str, str], poller: Poller, tmp_path: Path, answer: str, code: int, left: int
) -> None:
    """Only a clear yes removes."""
    poller("device", "add", "sw1", "192.0.2.1")
    terminal = Terminal(["device", "rm", "sw1"], environment, tmp_path)
    terminal.expect("remove device sw1")
    terminal.type(answer)
    assert terminal.end() == code
    assert poller("device", "list").stdout.count("sw1") == left


def test_removing_many_devices_requires_their_number(
    environment: dict[str, str], poller: Poller, tmp_path: Path
) -> None:
    """A `y` is typed too easily for 1,200 devices."""
    names = [f"sw{number:04}" for number in range(1_200)]
    (tmp_path / "fleet.csv").write_text(
        "name,address\n" + "\n".join(f"{name},192.0.2.1" for name in names) + "\n"
    )
    poller("device", "import", "fleet.csv")
    for answer, code in (("y\n", 2), ("1200\n", 0)):
        terminal = Terminal(["device", "rm", *names], environment, tmp_path)
        terminal.expect("Type 1200 to go on")
        terminal.type(answer)
        assert terminal.end() == code
    assert poller("device", "list").stdout.count("sw") == 0


def test_a_terminal_shows_a_table(
    environment: dict[str, str], poller: Poller, tmp_path: Path
) -> None:
    """The titles are capitals, and the table fits the screen."""
    poller("device", "add", "sw1", "192.0.2.1", "--tag", "x" * 60, "--tag", "y" * 60)
    terminal = Terminal(["device", "list"], {**environment, "COLUMNS": "80"}, tmp_path)
    assert terminal.end() == 0
    assert "NAME" in terminal.seen
    assert "192.0.2.1" in terminal.seen
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.seen)
    assert max(len(line) for line in plain.splitlines()) <= 80


@pytest.mark.parametrize(
    ("kind", "option"),
    [(socket.SOCK_DGRAM, "--snmp-port"), (socket.SOCK_STREAM, "--routeros-port")],
)
def test_a_simulator_port_in_use_is_named_with_its_option(
    poller: Poller, kind: int, option: str
) -> None:
    """The simulator has two ports, and one may be a default."""
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            other.listen()
        ports = {"--snmp-port": "0", "--routeros-port": "0", option: str(other.getsockname()[1])}
        refused = poller(
            "sim", "-n", "0", "--lab", "40", *(word for pair in ports.items() for word in pair)
        )
    assert refused.returncode == 2
    assert f": {option}: " in refused.stderr


def test_control_c_is_exit_code_130(environment: dict[str, str], tmp_path: Path) -> None:
    """Ctrl-C at a prompt ends the command without a traceback."""
    terminal = Terminal(["credential", "add", "c", "--kind", "community"], environment, tmp_path)
    terminal.expect("community:")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
