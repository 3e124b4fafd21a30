"""The figures of a report, one file a kind."""
