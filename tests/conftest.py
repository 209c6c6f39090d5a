"""What holds for every test: chance has no say in what hypothesis tries, nor has a busy machine.

`--hypothesis-profile=default` tries something new each time, and `--hypothesis-seed=N` what N stands for.
"""

from contextlib import suppress

with suppress(ImportError):  # other interpreters run what doesn't need it
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "seeded", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("seeded")
