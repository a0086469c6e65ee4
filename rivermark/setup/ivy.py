"""Fetching JARs with the Ivy that lies among Spark's own JARs: neither Spark nor Maven starts."""

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

SETTINGS = Path(__file__).with_name("ivysettings.xml")
PATIENCE_SECONDS = 600


class Problem(Exception):
    """Something that the person at the keyboard must fix; the text says how."""


class Module(NamedTuple):
    """A Maven coordinate."""

    organisation: str
    name: str
    version: str

    @classmethod
    def parse(cls, text: str) -> "Module":
        """Read `org:name:version`."""
        parts = text.split(":")
        if len(parts) != 3 or not all(re.fullmatch(r"[\w.-]+", part) for part in parts):
            raise Problem(f"{text!r} is not ORG:NAME:VERSION")
        return cls(*parts)

    @property
    def file(self) -> str:
        """The name under which the JAR is kept."""
        return f"{self.name}-{self.version}.jar"


def retrieve(
    modules: Iterable[Module],
    scratch: Path,
    *,
    transitive: bool,
    pattern: str = "[module]-[revision].[ext]",
) -> Path:
    """Fetch the modules' JARs, with all that they need or not, into a folder below `scratch`."""
    (scratch / "ivy.xml").write_text(_ivy_module(modules, transitive=transitive))
    settings = os.environ.get("RIVERMARK_IVY_SETTINGS") or SETTINGS
    command = [
        java(),
        f"-Drivermark.ivy.cache={scratch / 'ivy'}",
        f"-Divy.home={scratch / 'ivy'}",
        *("-cp", f"{spark_jars()}/*", "org.apache.ivy.Main"),
        *("-settings", str(settings), "-ivy", str(scratch / "ivy.xml"), "-confs", "default"),
        *("-retrieve", str(scratch / "jars" / pattern)),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        complaint = _reason(done.stdout + done.stderr) if done.returncode else ""
    except subprocess.TimeoutExpired:
        complaint = f"no end after {PATIENCE_SECONDS} s"
    except OSError as error:
        complaint = str(error)
    if complaint:
        raise Problem(
            f"the JARs could not be fetched: {complaint}. Nothing half-done was kept. Check the "
            "network (a proxy goes into JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=..., a mirror into an "
            "Ivy settings file that RIVERMARK_IVY_SETTINGS names) and run the same again."
        )
    return scratch / "jars"


def java() -> str:
    """The program that starts a JVM: that of JAVA_HOME, else the first one of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def spark_jars() -> Path:
    """The folder of the JARs that PySpark ships; located without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Problem("pyspark is not installed")
    return Path(spec.origin).parent / "jars"


def _reason(output: str) -> str:
    """Ivy on the cause: the network's words if there are any, else what it misses."""
    for telling in ("Handler", "not found", "Exception"):
        lines = [line.strip(" \t:") for line in output.splitlines() if telling in line]
        if lines:
            return "; ".join(lines[:2])
    return output.strip()[-500:]


def _ivy_module(modules: Iterable[Module], *, transitive: bool) -> str:
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)} "
        f"rev={quoteattr(module.version)} transitive={quoteattr(str(transitive).lower())} "
        'conf="default->default"/>'
        for module in modules
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="rivermark" module="setup"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )
