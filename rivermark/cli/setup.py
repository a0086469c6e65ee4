"""`rivermark setup`: all that Spark needs beside Python packages, in the user's cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rivermark.cli.arguments import Json
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.session import check_java
from rivermark.model.errors import RivermarkError
from rivermark.setup.class_archive import build
from rivermark.setup.ivy import Problem
from rivermark.setup.jars import cache_folder, fetch


def setup(
    sets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SET]...", help="Further sets of JARs, such as spark-kafka."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--jars",
            metavar="FOLDER",
            exists=True,
            help="Folder that already contains the JARs, instead of Maven.",
        ),
    ] = None,
    archive: Annotated[
        bool, typer.Option(help="Record Spark's classes, so that it starts in half the time.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Fetch Delta's JARs once and verify their hashes; afterwards no network is needed.

    They go into RIVERMARK_CACHE, by default ~/.cache/rivermark. A mirror of Maven goes into an Ivy
    settings file that RIVERMARK_IVY_SETTINGS names.

    JSON:
        cache, sets

    Examples:
        rivermark setup
        rivermark setup spark-kafka --jars /mnt/jars
    """
    check_java()
    names = ["delta", *(sets or ())]
    try:
        for name in names:
            fetch(name, source)
    except Problem as problem:
        raise RivermarkError(str(problem)) from problem
    if archive:
        build()
    if as_json:
        print_json({"cache": cache_folder(), "sets": names})
        return
    out().print(plain(f"ready: {cache_folder()}"))
