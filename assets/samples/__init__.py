"""Small real files for the demo; README.md beside this names their sources."""

from pathlib import Path
from typing import Final

SAMPLES: Final = Path(__file__).parent
