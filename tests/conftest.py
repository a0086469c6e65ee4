"""What all tests share: no example of a property test fails for being slow."""

from hypothesis import settings

# On a busy machine an example may take long. What is chosen where CI is set (the same examples each
# time) stays.
settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")
