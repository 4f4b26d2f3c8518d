"""Compiles, checks and pushes the RDMA configuration of a whole fabric from one intent."""

__version__ = "0.1.0"
