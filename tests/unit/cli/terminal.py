"""A command at a terminal, and a person who answers what it asks."""

import os
import select
import subprocess
import sys
from typing import NamedTuple

TIMEOUT_S = 60.0
CONTROLLING = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Passwords are asked for at the terminal that controls a process, wherever its standard input leads."""


class Ended(NamedTuple):
    """How a command ended, and all that stood on the screen."""

    exit_code: int
    screen: str


def at_terminal(*words: str, answers: dict[str, str], **environment: str) -> Ended:
    """Run `ottla WORDS...`, and type each answer once its question is on the screen."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", CONTROLLING, sys.executable, "-m", "ottla", *words]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}
    running = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**inherited, "COLUMNS": "300", **environment},
    )
    os.close(theirs)
    screen = ""
    try:
        for question, answer in answers.items():
            # The last space comes once nothing that is typed is shown any more; what was typed before is thrown away.
            while f"{question}: " not in screen:
                screen += _read(ours)
            os.write(ours, answer.encode() + b"\n")
        while more := _read(ours):
            screen += more
        return Ended(running.wait(TIMEOUT_S), screen)
    finally:
        os.close(ours)
        running.kill()
        running.wait()


def _read(terminal: int) -> str:
    """What comes next, or nothing once nobody is at the other end."""
    assert select.select([terminal], [], [], TIMEOUT_S)[0], "the command says nothing"
    try:
        return os.read(terminal, 1 << 16).decode()
    except OSError:
        return ""
