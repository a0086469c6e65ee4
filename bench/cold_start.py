"""What starting costs: imports, and the demo.

    python -m bench cold_start [--only imports demo] [--out FILE]

Each is a process of its own, cold; CPU seconds and peak memory are those of its whole tree.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.figures import load, options_of, report
from bench.process_tree import run_measured

CONSOLE: Final = str(Path(sys.executable).with_name("rivermark"))
IMPORTS: Final = {
    "code_location": [sys.executable, "-c", "import platform_defs.definitions"],
    "process_core": [sys.executable, "-c", "import rivermark.process"],
    "help": [CONSOLE, "--help"],
    "status": [CONSOLE, "status", "--home"],
}


def measure_imports(folder: Path, repeats: int) -> dict[str, float]:
    """Median of what starts no Spark session; none of them may load a JVM."""
    figures: dict[str, float] = {}
    for name, command in IMPORTS.items():
        whole = [*command, str(folder / "nothing")] if command[-1] == "--home" else command
        costs = [run_measured(whole, folder / "log")[0] for _ in range(repeats)]
        figures[f"{name}_wall_seconds"] = round(statistics.median(c.wall for c in costs), 2)
        figures[f"{name}_cpu_seconds"] = round(statistics.median(c.cpu for c in costs), 2)
    return figures


def measure_demo(folder: Path) -> dict[str, float]:
    """The demo as a person runs it; it fails unless all its checks hold."""
    command = [CONSOLE, "demo", "--home", str(folder / "demo")]
    return run_measured(command, folder / "log")[0].figures("demo")


def main() -> None:
    """Measure the chosen parts and report them."""
    parts = ("imports", "demo")
    parser = options_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repeats", type=int, default=3, help="of the imports")
    options = parser.parse_args()
    figures: dict[str, Any] = {"load_before": load()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "imports" in options.only:
            figures |= measure_imports(folder, options.repeats)
        if "demo" in options.only:
            figures |= measure_demo(folder)
    report("cold_start", figures, options.out)


if __name__ == "__main__":
    main()
