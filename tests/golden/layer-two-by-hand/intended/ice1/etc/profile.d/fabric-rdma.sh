# managed by fabric: changes are overwritten; edit the intent instead
export UCX_IB_TRAFFIC_CLASS=130
