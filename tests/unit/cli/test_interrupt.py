"""Ctrl-C ends a command without a stack of the bridge to the JVM, which Py4J would print itself."""

from __future__ import annotations

import logging

import pytest
from py4j import java_gateway

from rivermark.cli.session import silence_bridge


def test_an_interrupted_call_of_the_jvm_prints_no_stack(caplog: pytest.LogCaptureFixture) -> None:
    silence_bridge()
    code = compile(
        "logging.exception('KeyboardInterrupt while sending command.')\n"
        "logging.getLogger('py4j.clientserver').error('reset')",
        java_gateway.__file__,
        "exec",
    )
    exec(code, {"logging": logging})  # noqa: S102 - as if it stood in Py4J
    logging.warning("a warning of anybody else")

    assert caplog.messages == ["a warning of anybody else"]
