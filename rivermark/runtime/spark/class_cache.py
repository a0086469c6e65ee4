"""Java classes by name, looked up once: Spark's Python side looks them up at every use.

For a name such as `scala.jdk.javaapi.X` py4j asks the JVM for each part whether it is a class or a
package, and for a class that Spark imports by wildcard in one package after the other. Each "no"
is a search through all of Spark's 270 JARs (docs/decisions/0007-what-a-start-costs.md).
Written for Spark 4.2; with another version each look-up is made as Spark makes it.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaPackage, JVMView
from pyspark import SparkContext
from pyspark.sql import SparkSession

from rivermark.runtime.spark.version import is_known_version


class KnownPackage(JavaPackage):  # type: ignore[misc]
    """A package whose members are looked up once."""

    def __getattr__(self, name: str) -> Any:
        """Look a member up and keep it, so that Python finds it itself from then on."""
        return keep(self.__dict__, name, super().__getattr__(name))


class KnownClasses(JVMView):  # type: ignore[misc]
    """The view of a JVM whose names are looked up once."""

    def __getattr__(self, name: str) -> Any:
        """Look a name up and keep it, so that Python finds it itself from then on."""
        return keep(self.__dict__, name, super().__getattr__(name))


def keep(known: dict[str, Any], name: str, member: Any) -> Any:
    """Keep a member, but a class that is still to be imported: py4j takes it for a package."""
    if isinstance(member, JavaPackage):
        member = KnownPackage(member._fqn, member._gateway_client, member._jvm_id)
        if not name.islower():
            return member
    known[name] = member
    return member


def remember_classes(session: SparkSession) -> None:
    """Let each name that Spark's Python side looks up in the JVM be looked up once."""
    if not is_known_version():
        return
    gateway: Any = session.sparkContext._gateway
    view = gateway.jvm
    if not isinstance(view, KnownClasses):
        # The imports by wildcard belong to the id, which stays.
        view = KnownClasses(view._gateway_client, view._jvm_name, id=view._id)
        gateway.jvm = view
    SparkContext._jvm = view
    session._jvm = view
