"""The self-contained HTML page: templates and style."""
