"""The embedded lab: simulated switches and sandboxed hosts behind real SSH on loopback.

`fabric` starts and steers a lab (light: no SSH library is imported), `server` is its background
process, `breaks` are the faults it can be given, `simulators` holds one module per switch platform.
"""
