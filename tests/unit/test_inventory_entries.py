"""Every entry of hosts.yaml has its own settings, however many there are."""

from __future__ import annotations

from pathlib import Path

from rdma_fabric.inventory.load import load

HOSTS = 60


def test_an_entrys_settings_are_its_own(tmp_path: Path) -> None:
    rows = [
        f"h{n:02}: {{platform: linux, data: {{role: host, set: {{mtu.host: {4200 + n}}}}}}}"
        if n % 3
        else f"h{n:02}: {{platform: linux, data: {{role: host}}}}"
        for n in range(HOSTS)
    ]
    (tmp_path / "hosts.yaml").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "cables.csv").write_text("a_node,a_port,b_node,b_port,length_m\n", encoding="utf-8")
    nodes = load(tmp_path, ("linux",)).nodes
    found = [[layer.data for layer in node.spec.layers] for node in nodes.values()]
    assert found == [[{"mtu": {"host": 4200 + n}}] if n % 3 else [] for n in range(HOSTS)]
