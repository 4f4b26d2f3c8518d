"""The consistency checker: rules on small shared values, one engine that walks, blames and groups."""

from rdma_fabric.checker.engine import Report, check
from rdma_fabric.checker.fabric import Judged, build

__all__ = ["Judged", "Report", "build", "check"]
