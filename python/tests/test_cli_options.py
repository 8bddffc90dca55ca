"""The options of the `cuop` command, whatever the version of typer."""

from typing import get_type_hints

import pytest

typer = pytest.importorskip("typer")
main = pytest.importorskip("cuop.cli.main")


def commands_of(application):
    """The functions of all commands, those of groups too."""
    for group in application.registered_groups:
        yield from commands_of(group.typer_instance)
    yield from (command.callback for command in application.registered_commands)


def test_options_that_are_named_as_their_values_say_so():
    """typer 0.27 takes an option's name, where it is not given, from that of its value: --DTYPE DTYPE."""
    options = set()
    for command in commands_of(main._application()):
        for name, hint in get_type_hints(command, include_extras=True).items():
            for option in getattr(hint, "__metadata__", ()):
                if not isinstance(option, typer.models.OptionInfo):
                    continue
                if (option.metavar or "").lower() == name:
                    # The first of what is given is called its default until typer has looked.
                    assert f"--{name}" in (option.default, *option.param_decls), command
                    options.add(name)
    assert options == {"suite", "dtype", "device", "norm", "mode", "boundary"}
