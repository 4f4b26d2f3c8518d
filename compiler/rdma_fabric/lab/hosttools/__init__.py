"""What runs inside a lab host: its first process and the tools of hardware that is not there.

The package is copied into every sandbox and run by the machine's own python3 without site packages,
so its modules import the standard library and each other only, and import as little as they can:
python's start is paid on each call of a tool. Written from the vendor facts, never from this
project's templates or parsers.
"""
