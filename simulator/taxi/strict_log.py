"""The natural logarithm as Java's StrictMath computes it, bit for bit.

Java's gaussian numbers are defined on `StrictMath.log`, which is the C library fdlibm (Sun, 1993,
`e_log.c`). Other libraries round a few per cent of all arguments the other way in the last bit.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

LN2_HIGH: Final = 6.93147180369123816490e-01
LN2_LOW: Final = 1.90821492927058770002e-10

# The polynomial of log(1 + f) in s = f / (2 + f), by rising powers of s squared.
SERIES: Final = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


def strict_log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The natural logarithm of each value, which must be positive, finite and not subnormal."""
    bits = x.view(np.int64)
    high = bits >> 32
    mantissa = high & 0x000FFFFF
    above_root_two = (mantissa + 0x95F64) & 0x100000
    exponent = ((high >> 20) - 1023 + (above_root_two >> 20)).astype(np.float64)
    # x = 2**exponent * (1 + f), with 1 + f between sqrt(2)/2 and sqrt(2).
    scaled = ((mantissa | (above_root_two ^ 0x3FF00000)) << 32) | (bits & 0xFFFFFFFF)
    f = scaled.view(np.float64) - 1.0

    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (SERIES[1] + w * (SERIES[3] + w * SERIES[5]))
    odd = z * (SERIES[0] + w * (SERIES[2] + w * (SERIES[4] + w * SERIES[6])))
    series = odd + even

    half_square = 0.5 * f * f
    far = half_square - (s * (half_square + series) + exponent * LN2_LOW)
    near = s * (f - series) - exponent * LN2_LOW
    tiny = f * f * (0.5 - 0.33333333333333333 * f) - exponent * LN2_LOW
    # fdlibm takes the longer form between about 0.7 and 1.38 away from the powers of two.
    is_far = ((mantissa - 0x6147A) | (0x6B851 - mantissa)) > 0
    is_tiny = (0x000FFFFF & (2 + mantissa)) < 3
    correction = np.where(is_tiny, tiny, np.where(is_far, far, near))
    return np.asarray(exponent * LN2_HIGH - (correction - f), dtype=np.float64)
