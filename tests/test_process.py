"""How a process begins and ends, seen from outside: exit code, standard error, signals."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.temporal import private_server

ROOT = Path(__file__).parent.parent


def started(body: str, *arguments: str) -> subprocess.Popen[str]:
    program = f"import asyncio, sys\nfrom process import Refused, run_main, stop_signal\n{body}\nrun_main(main)\n"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(program: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error."""
    errors = program.communicate(timeout=30)[1]
    return program.returncode, errors


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_answer_of_main_is_the_exit_code(code: int) -> None:
    assert ended(started(f"async def main(): return {code}")) == (code, "")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("Refused('port 1 is taken')", "tidings: port 1 is taken\n"),
        ("__import__('settings').SettingsError('brand: too long')", "tidings: brand: too long\n"),
        ("__import__('domain.errors').errors.NotFound()", "tidings: There is no such object.\n"),
    ],
)
def test_an_expected_failure_is_one_line(error: str, line: str) -> None:
    assert ended(started(f"async def main(): raise {error}")) == (1, line)


def test_a_bug_keeps_its_traceback() -> None:
    code, errors = ended(started("async def main(): raise ZeroDivisionError('oops')"))
    assert code == 1
    assert errors.startswith("Traceback")
    assert errors.endswith("ZeroDivisionError: oops\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_main_end_in_its_own_time(number: signal.Signals) -> None:
    program = started(
        "async def main():\n"
        "    stop = stop_signal()\n"
        "    print('ready', flush=True)\n"
        "    await stop.wait()\n"
        "    await asyncio.sleep(0.1)\n"
        "    return 0\n"
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(number)
    program.send_signal(number)  # an impatient second one changes nothing
    assert ended(program) == (0, "")


def test_ctrl_c_without_a_handler_is_quiet() -> None:
    program = started("async def main():\n    print('ready', flush=True)\n    await asyncio.sleep(60)\n")
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGINT)
    assert ended(program) == (130, "")


@pytest.mark.slow
async def test_ending_right_after_a_temporal_call_is_clean(tmp_path: Path) -> None:
    body = (
        "from temporalio.client import Client\n"
        "async def main():\n"
        "    client = await Client.connect(sys.argv[1])\n"
        "    await client.service_client.check_health()\n"
        "    return 0\n"
    )
    async with private_server(tmp_path) as server:
        endings = [await asyncio.to_thread(ended, started(body, server.address)) for _ in range(20)]
    assert endings == [(0, "")] * 20
