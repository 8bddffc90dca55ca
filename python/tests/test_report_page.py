"""How pages and tables write sizes and times."""

import pytest

from cuop.report.page import format_bytes, format_seconds


@pytest.mark.parametrize(
    "count, text",
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (7 << 40, "7.0 TiB"),
        (2 << 50, "2048.0 TiB"),
    ],
)
def test_bytes(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0 µs"), (2.5e-5, "25 µs"), (1.5e-3, "1.5 ms"), (0.25, "250.0 ms"), (61.234, "61.23 s")],
)
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text
