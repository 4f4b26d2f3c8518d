"""A host that installs by itself, on a sandbox: the state and the steps are those of `apply`."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rdma_fabric import platforms
from rdma_fabric.platforms._contract import Call, Put
from rdma_fabric.push.image import image
from rdma_fabric.render import files
from rdma_fabric.state import NodeState, differences, forget_unknown, owned_part
from tests.lab.hostlab import run, running, said
from tests.lab.test_circle_linux import WISH, Lab, make

pytestmark = pytest.mark.lab

PLACE = "/opt/fabric-bundle"


class Alone(Lab):
    """A sandbox that has fetched its bundle."""

    def fetch(self, wish: NodeState) -> None:
        wanted = self.realize(wish)
        found = image(files(wanted, self.hw), wanted, self.hw)
        assert found.why_not == ""
        with tarfile.open(fileobj=io.BytesIO(found.data)) as archive:
            for member in archive.getmembers():
                text = archive.extractfile(member)
                assert text is not None
                path = f"/opt/{member.name}"
                status, _, error = run(
                    self.host,
                    f"mkdir -p {PLACE} && cat > {path} && chmod {member.mode:o} {path}",
                    text.read().decode(),
                )
                assert status == 0, error

    def install(self, *words: str) -> tuple[int, dict[str, Any]]:
        status, out, error = run(self.host, f"{PLACE}/install.sh {' '.join(words)}")
        assert error == "", error
        found: dict[str, Any] = json.loads(out)
        return status, found

    def differs(self, wish: NodeState) -> list[str]:
        wanted = self.realize(wish)
        return [one.path for one in differences(wanted, self.observe().running)]


@pytest.fixture(params=["ofed", "inbox"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Alone]:
    facts, hw = make(request.param, "netplan", "netplan", tmp_path)
    with running(facts, tmp_path) as host:
        yield Alone(host, hw)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Alone]:
    facts, hw = make("ofed", "netplan", "netplan", tmp_path)
    with running(facts, tmp_path) as host:
        yield Alone(host, hw)


def test_live(lab: Alone) -> None:
    foreign = lab.foreign()
    by_hand = lab.change(lab.realize(WISH))
    lab.fetch(WISH)
    status, dry = lab.install("--check")
    assert status == 0 and dry["changed"] and lab.differs(WISH)
    status, first = lab.install()
    assert (status, first["changed"], first["failed"], first["refused"]) == (0, True, None, ""), first
    assert lab.differs(WISH) == [] and lab.change(lab.realize(WISH)).empty
    assert lab.foreign() == foreign
    # What apply would have done on the same blank host was done, and nothing else.
    puts = {step.path for step in by_hand.commit if isinstance(step, Put)}
    calls = {step.argv for step in by_hand.commit if isinstance(step, Call)}
    done = first["done"]
    assert puts <= {word.removeprefix("put ") for word in done if word.startswith("put ")}
    assert {word.removeprefix("call ") for word in done if word.startswith("call ")} <= {
        " ".join(argv) for argv in calls
    }
    status, second = lab.install()
    assert (status, second["changed"], second["done"]) == (0, False, [])
    assert run(lab.host, "fabric-host check")[0] == 0
    # A controller finds a host at the intent, also its local check.
    wanted = lab.realize(WISH)
    assert platforms.with_local_check(lab.change(wanted), lab.observe(), wanted, lab.hw).empty


def test_files_only_count_from_the_next_boot_on(one: Alone) -> None:
    one.fetch(WISH)
    before = one.observe().running
    status, found = one.install("--offline")
    assert status == 0 and found["changed"]
    ports = owned_part(before, one.realize(WISH))
    left = [item.path for item in differences(ports, one.observe().running) if item.path.startswith("ports.")]
    assert left == []
    assert one.install("--offline")[1]["changed"] is False
    one.host.reboot()
    assert one.differs(WISH) == []


def test_a_step_that_fails_takes_everything_back(one: Alone) -> None:
    blank = one.observe()
    one.fetch(WISH)
    said(one.host, "mv /usr/local/sbin/cma_roce_tos /usr/local/sbin/cma_roce_tos.kept")
    run(one.host, "cat > /usr/local/sbin/cma_roce_tos && chmod 755 /usr/local/sbin/cma_roce_tos",
        "#!/bin/sh\necho refused >&2; exit 1\n")  # fmt: skip
    status, found = one.install()
    said(one.host, "mv -f /usr/local/sbin/cma_roce_tos.kept /usr/local/sbin/cma_roce_tos")
    assert status == 1 and found["undone"] and "fabric-qos" in found["failed"]["step"], found
    seen = one.observe()
    mtus = forget_unknown(blank.running)
    assert [port.settings.mtu for port in seen.running.ports] == [port.settings.mtu for port in mtus.ports]
    assert said(one.host, "find /etc -type f -path '*fabric*' -not -path '*/fabric-lab/*'") == ""
    assert one.install()[1]["failed"] is None and one.differs(WISH) == []


def test_a_damaged_bundle_and_a_file_of_somebody_else(one: Alone) -> None:
    one.fetch(WISH)
    said(one.host, "echo NCCL_DEBUG=INFO > /etc/nccl.conf")
    status, found = one.install()
    assert status == 1 and "/etc/nccl.conf is not ours" in found["refused"]
    said(one.host, f"rm /etc/nccl.conf; sed -i s/9000/9001/ {PLACE}/bundle.json")
    status, out, error = run(one.host, f"{PLACE}/install.sh")
    assert status == 1 and "checksums" in json.loads(out)["refused"] and "bundle.json: FAILED" in error
    assert said(one.host, "cat /etc/nccl.conf 2>/dev/null || echo none") == "none\n"
