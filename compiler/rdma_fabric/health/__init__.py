"""Is the fabric well: what two reads of the devices, and tests between hosts, say against the intent."""
