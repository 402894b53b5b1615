"""Where commands get passwords from. Never from an argument: those can be seen by everybody on the machine.

The first of these that there is: the variable OTTLA_PASSWORD, a prompt on a terminal, a line of standard input.
"""

import os
import sys

import typer

PASSWORD_VARIABLE = "OTTLA_PASSWORD"


def login_password(user: str, *, stdin_is_data: bool) -> str:
    """The password to log in with. `stdin_is_data`: standard input is something else, of which no line may be taken."""
    if found := os.environ.get(PASSWORD_VARIABLE):
        return found
    if sys.stdin.isatty():
        return _asked(f"Password of {user}", twice=False)
    if stdin_is_data:
        looked = "standard input is the data, and no terminal to ask at"
        advice = f"set {PASSWORD_VARIABLE}, or have the password in the file of --command-config"
        raise _missing(f"to log in as {user}", f"{_variable()}, and {looked}", advice)
    if line := _read_line():
        return line
    looked = f"{_variable()}, standard input is no terminal to ask at, and there is no line in it"
    raise _missing(f"to log in as {user}", looked, f"set {PASSWORD_VARIABLE}, or write it to standard input")


def new_password(user: str, *, logged_in_as: str | None) -> str:
    """A user's new password. Where the command has logged in with the variable itself, that is not the new one."""
    if logged_in_as is None and (found := os.environ.get(PASSWORD_VARIABLE)):
        # Standard input may be a pipe that never ends, so nobody looks whether there is another password in it.
        typer.echo(f"the password of {user} is the one in {PASSWORD_VARIABLE}", err=True)
        return found
    if sys.stdin.isatty():
        return _asked(f"New password of {user}", twice=True)
    if line := _read_line():
        return line
    variable = _variable() if logged_in_as is None else f"{PASSWORD_VARIABLE} is for the login as {logged_in_as}"
    looked = f"{variable}, standard input is no terminal to ask at, and there is no line in it"
    advice = "write it to standard input" + ("" if logged_in_as else f", or set {PASSWORD_VARIABLE}")
    raise _missing(f"for {user}", looked, advice)


def _variable() -> str:
    return f"{PASSWORD_VARIABLE} is {'empty' if PASSWORD_VARIABLE in os.environ else 'not set'}"


def _asked(what: str, *, twice: bool) -> str:
    answer: str = typer.prompt(what, hide_input=True, confirmation_prompt=twice, err=True)
    return answer


def _read_line() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _missing(what_for: str, looked: str, advice: str) -> typer.BadParameter:
    return typer.BadParameter(f"there is no password {what_for}: {looked}; {advice}")
