"""Dagster's services and the documents, supervised, and the supervisor itself.

Each is started again when it dies, alone and without a hand; what runs on is left running:

- `supervisor`: starts the services, and again by a restart strategy when one has ended.
- `standby`: a second process that becomes the supervisor when the supervisor is killed.
- `documents`: serves dashboard, failing rows and Data Docs, to which the page links.

    python -m rivermark.dagster.ui --port 3000

shows the definitions of the project in the working folder.
"""
