"""Signatures of the extension's functions, read from the text that stubs are made of."""

import ast
import inspect
import re


def signatures(function):
    """One of each form in which a function of the extension can be called."""
    texts = [text for text, *_ in function.__nb_signature__ if not text.endswith("(...)")]
    return [_signature(re.sub(r"\\\d+", "None", text)) for text in texts]


def _signature(text):
    definition = ast.parse(f"{text}: ...").body[0].args
    plain = definition.posonlyargs + definition.args
    by_name = definition.kwonlyargs
    kinds = inspect.Parameter
    found = [
        _parameter(
            argument, kinds.POSITIONAL_OR_KEYWORD, i >= len(plain) - len(definition.defaults)
        )
        for i, argument in enumerate(plain)
    ]
    if definition.vararg:
        found.append(_parameter(definition.vararg, kinds.VAR_POSITIONAL))
    for argument, default in zip(by_name, definition.kw_defaults, strict=True):
        found.append(_parameter(argument, kinds.KEYWORD_ONLY, default is not None))
    if definition.kwarg:
        found.append(_parameter(definition.kwarg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


def _parameter(argument, kind, has_default=False):
    none = inspect.Parameter.empty
    annotation = ast.unparse(argument.annotation) if argument.annotation else none
    default = None if has_default else none
    return inspect.Parameter(argument.arg, kind, annotation=annotation, default=default)
