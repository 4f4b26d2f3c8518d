"""How nodes are reached: addresses, credentials, host keys, limits, and sessions over SSH.

Nothing here imports an SSH library before a session opens, so that commands without devices stay quick.
"""
