"""One thin file a command: parse, build, run, report."""
