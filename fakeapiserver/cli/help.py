"""`fakeapiserver help [TOPIC | COMMAND]`."""

from collections.abc import Sequence

from fakeapiserver import spelling
from fakeapiserver.cli.arguments import UnknownFlag
from fakeapiserver.cli.complain import complain, refuse
from fakeapiserver.cli.manual.commands import commands
from fakeapiserver.cli.manual.overview import help_list
from fakeapiserver.cli.manual.page import command_page, topic_page
from fakeapiserver.cli.manual.topics import TOPICS


def main(arguments: Sequence[str]) -> int:
    """0; 2 if there is no such topic."""
    if flag := next((word for word in arguments if word.startswith("-")), ""):
        return refuse(UnknownFlag(flag, ("help",)), "help")
    name = " ".join(arguments)
    if not name:
        print(help_list(), end="")
    elif name in TOPICS and name in commands():  # such as `nodes`
        print(f"{topic_page(name)}\n{command_page(name)}", end="")
    elif name in TOPICS:
        print(topic_page(name), end="")
    elif name in commands():
        print(command_page(name), end="")
    else:
        match = spelling.closest(name, [*TOPICS, *commands()])
        hint = f"; did you mean {match}?" if match else ""
        return complain(f"there is no topic or command {name!r}{hint} (see fakeapiserver help)", 2)
    return 0
