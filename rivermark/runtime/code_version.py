"""The version of the code that computes: a stream's build by name, with a hash of its module."""

from __future__ import annotations

import hashlib
import inspect
from functools import partial
from typing import Any

from rivermark.model.stream import Stream
from rivermark.process.spark import ProcessBuild


def code_of(stream: Stream) -> str:
    """Such as `assets.taxi.tips:tips_per_driver@3f2a91c04d1e`.

    The hash covers the module that holds the build, not what that module imports.
    """
    build = underlying(stream.build)
    module = getattr(build, "__module__", None) or type(build).__module__
    name = getattr(build, "__qualname__", None) or type(build).__qualname__
    return f"{module}:{name}@{source_hash(build)}"


def underlying(build: Any) -> Any:
    """The function or class behind partial applications and process builds."""
    while True:
        if isinstance(build, partial):
            build = build.func
        elif isinstance(build, ProcessBuild):
            build = build.make
        else:
            return build


def source_hash(build: Any) -> str:
    """The first twelve digits of SHA-256 over the module's source; zeros where there is none."""
    try:
        module = inspect.getmodule(build)
        source = inspect.getsource(module) if module is not None else inspect.getsource(build)
    except (OSError, TypeError):
        return "0" * 12
    return hashlib.sha256(source.encode()).hexdigest()[:12]
