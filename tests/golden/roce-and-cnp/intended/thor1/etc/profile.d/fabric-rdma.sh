# managed by fabric: changes are overwritten; edit the intent instead
export UCX_IB_TRAFFIC_CLASS=106
export UCX_NET_DEVICES=bnxt_re0:1,bnxt_re1:1
