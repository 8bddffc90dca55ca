"""Tables of calls that must fail."""

import re

import pytest

import cuop


def each_raises(*cases, are_patterns=False):
    """A test of each (call, error, text): the text, or the pattern, stands in the message."""

    @pytest.mark.parametrize(("call", "error", "text"), cases)
    def test(call, error, text):
        with pytest.raises(error, match=text if are_patterns else re.escape(text)):
            call()

    return test


def zeros(*shape, dtype="float32"):
    """An argument for them: cuop.zeros with the sizes one by one."""
    return cuop.zeros(shape, dtype=dtype)
