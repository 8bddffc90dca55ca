"""Standard output and error whose reader may go: that ends the command, and is no failure of it."""

import io
import os
import sys


class ReaderGone(BaseException):
    """Nobody reads the command's output any more.

    No OSError, which libraries that print would turn into exit code 1.
    """


def watch_readers() -> None:
    """Let sys.stdout raise ReaderGone where its reader has closed the pipe.

    Words on sys.stderr that nobody reads are dropped: they do not end the command.
    """
    sys.stdout = _watched(sys.stdout, _Output)
    sys.stderr = _watched(sys.stderr, _Words)


def drop_unwritten_output() -> None:
    """Python would try to write it once more at its end, and complain once more."""
    try:
        sys.stdout.flush()
    except (OSError, ReaderGone):
        _lead_nowhere(sys.stdout.fileno())


class _Words(io.FileIO):
    def write(self, data) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            _lead_nowhere(self.fileno())  # what is still buffered must not fail at the end
            return self._is_unread(data)

    def _is_unread(self, data) -> int:
        return len(data)


class _Output(_Words):
    def _is_unread(self, data) -> int:
        raise ReaderGone from None


def _watched(stream, kind: type[io.FileIO]):
    if stream is None:  # the shell has closed it, as by >&-
        return open(os.devnull, "w")  # noqa: SIM115, kept until the process ends
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    buffer = io.BufferedWriter(kind(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(
        buffer,
        encoding=stream.encoding,
        errors="backslashreplace",  # names of files may hold what the encoding does not
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _lead_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
