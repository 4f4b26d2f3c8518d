"""From what was seen to a plan: changes per node, who may be disturbed, and in which order."""

from rdma_fabric.plan.changes import Plan, PlanRow, make_plan
from rdma_fabric.plan.disturb import Budget

__all__ = ["Budget", "Plan", "PlanRow", "make_plan"]
