"""An expectation of a team's own, known to Great Expectations once this module is imported."""

import great_expectations.expectations as gxe


class ExpectMilesOnTheGlobe(gxe.ExpectColumnValuesToBeBetween):
    """Miles are between those of the poles."""

    column: str = "miles"
    min_value: float = -180.0
    max_value: float = 180.0
