"""The figures of a report, one file a kind. Imports all of studies but launch."""
