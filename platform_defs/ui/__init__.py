"""Dagster's services, minded: the page, the daemon, the code server, and the minder itself.

Each is started again when it dies, alone and without a hand; what runs on is left running:

- `minder`: starts the services, and again by a restart strategy when one has ended.
- `deputy`: a second process that becomes the minder when the minder is killed.
- `code_server`: heals the code server's own child, which Dagster does not.

    python -m platform_defs.ui --port 3000
"""
