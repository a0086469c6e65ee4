"""What all tests share: no property test fails for being slow, and interrupts are heard."""

import signal

from hypothesis import settings

# On a busy machine an example may take long. What is chosen where CI is set (the same examples each
# time) stays.
settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")

# A shell starts what runs in the background with SIGINT ignored, and what a test starts inherits
# that; after a run of Dagster in this process for SIGTERM too, which has SIGINT's handler then.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
