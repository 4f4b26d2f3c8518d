# managed by fabric: changes are overwritten; edit the intent instead
export UCX_IB_TRAFFIC_CLASS=106
export UCX_NET_DEVICES=rocep24s0f0:1
