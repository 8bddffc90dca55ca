"""Entry point of the `cuop` command: subcommands, exit codes, and how errors are said.

Exit codes: 0 done, 1 failed (an error, or a check that did not hold), 2 wrong usage,
130 interrupted, 129 and 143 ended by SIGHUP and SIGTERM.
"""

import signal
import sys
from typing import NoReturn

from cuop.cli.output import ReaderGone, drop_unwritten_output, watch_readers

#: Exit code of Ctrl-C, which is typer's, and of it alone.
_INTERRUPTED = 130
#: The signals, heard as Ctrl-C is, that have asked the command to end.
_ended_by: list[int] = []


def main() -> None:
    """Run the command line and exit."""
    try:
        watch_readers()
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) == signal.SIG_DFL:  # not what nohup has them ignore
                signal.signal(number, _end)
        _application()(prog_name="cuop")  # exits by itself: 0, 2 on wrong usage, 130 on Ctrl-C
    except ReaderGone:
        sys.exit(0)
    except KeyboardInterrupt:  # while commands are imported or described
        sys.exit(_code_of_end())
    except SystemExit as done:
        if done.code == _INTERRUPTED:
            sys.exit(_code_of_end())
        raise
    except ModuleNotFoundError as error:
        _fail(f"cuop: this needs {error.name}: pip install 'cuop[cli,demo,bench]'")
    except Exception as error:
        from cuop.errors import Error

        if not isinstance(error, (Error, OSError, MemoryError)):
            raise
        drop_unwritten_output()
        _fail(f"cuop: error: {error}")


def _end(number: int, frame: object) -> NoReturn:
    _ended_by.append(number)
    raise KeyboardInterrupt


def _code_of_end() -> int:
    return 128 + _ended_by[0] if _ended_by else _INTERRUPTED


def _fail(words: str) -> NoReturn:
    print(words, file=sys.stderr, flush=True)  # not left to the interpreter's end
    sys.exit(1)


def _application():
    import typer

    from cuop.cli import bench, cache, demo, info, plan, run, tune

    application = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Tensors, operators and distributed algorithms, from the shell.",
        epilog="Exit codes: 0 done, 1 failed or a check did not hold, 2 wrong usage, "
        "130 interrupted, 129 and 143 ended by SIGHUP and SIGTERM.",
    )

    @application.callback(invoke_without_command=True)
    def options(
        version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    ) -> None:
        if version:
            import cuop

            typer.echo(f"cuop {cuop.__version__}")
            raise typer.Exit()

    application.command("info")(info.info)
    application.command("demo")(demo.demo)
    application.command("run")(run.run)
    application.command("bench")(bench.bench)
    application.command("plan")(plan.plan)
    application.add_typer(cache.application, name="cache")
    application.add_typer(tune.application, name="tune")
    return application


if __name__ == "__main__":
    main()
