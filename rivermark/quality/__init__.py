"""Great Expectations suites as code, run on pinned table versions, with the pages they draw."""
