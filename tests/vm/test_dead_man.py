"""Runs that die between commit and confirm: the host takes its change back, also across a power cut."""

from __future__ import annotations

import time

import pytest

from tests.support.fabrics import wait_for
from tests.vm.guest import Facts, Guest

pytestmark = pytest.mark.vm

HELD = "/tmp/confirm-waits"
HOLD = f"""#!/bin/sh
case "$*" in *"--mode confirm"*) touch {HELD}; sleep 600; exit 1 ;; esac
exec /usr/bin/sudo "$@"
"""
"""A sudo that lets everything through but a confirmation."""
AFTER_BOOT_S = 30
"""The host waits so long for its devices before it takes live values back (docs/platforms/linux.md)."""


@pytest.fixture(scope="module")
def before(guest: Guest) -> tuple[Facts, dict[str, str]]:
    guest.machine.write("/usr/local/bin/sudo", HOLD, "0755")
    return guest.facts(), guest.files()


def killed(guest: Guest, timer_s: int) -> float:
    """A run that is killed when everything is live and only its confirmation is missing; gives how long the
    run took to come so far, in seconds."""
    guest.machine.root(f"rm -f {HELD}")
    words = ("--yes", "--allow", "loss", "--timer", str(timer_s))
    started = time.monotonic()
    process = guest.fabric.start("apply", *words)
    held = f"n=0; until test -e {HELD} || test $n -ge 30; do sleep 1; n=$((n + 1)); done; test -e {HELD}"
    wait_for(lambda: process.poll() is not None or guest.machine.ssh(held)[0] == 0, 900)
    took = time.monotonic() - started
    process.kill()
    said = process.communicate(timeout=60)
    assert process.returncode == -9, said
    assert guest.pending()
    assert guest.machine.run("cat /sys/class/net/data0/mtu").strip() == "9000"
    return took


def taken_back(guest: Guest, before: tuple[Facts, dict[str, str]], seconds: float) -> None:
    """All values and all files are those from before."""
    waiting = "while test -e /var/lib/fabric/pending.json && test $n -lt 30; do sleep 1; n=$((n + 1)); done"
    wait_for(lambda: bool(guest.machine.root(f"n=0; {waiting}")) or not guest.pending(), seconds)
    assert guest.last()["outcome"] == "no confirmation came"
    assert guest.facts().settings == before[0].settings
    kept = {path: text for path, text in guest.files().items() if not path.endswith("/fabric-host")}
    assert kept == before[1]


@pytest.fixture(scope="module")
def cut(guest: Guest, before: tuple[Facts, dict[str, str]]) -> float:
    """The power went after a run that died; how long such a run takes on this machine, in seconds."""
    took = killed(guest, 3600)
    guest.machine.power_cut()
    return took


def test_power_is_cut_before_the_timer_ends(
    guest: Guest, before: tuple[Facts, dict[str, str]], cut: float
) -> None:
    """The timer dies with the machine. The files are back before anything reads them at the next boot."""
    journal = guest.machine.root(
        "journalctl -b -o short-monotonic --no-pager -u fabric-recover -u systemd-sysctl"
    )
    recovered, sysctl = (
        next(at for at, line in enumerate(journal.splitlines()) if word in line)
        for word in ("Finished fabric-recover", "Starting systemd-sysctl")
    )
    assert recovered < sysctl, journal
    taken_back(guest, before, AFTER_BOOT_S + 600)


def test_nobody_confirms(guest: Guest, before: tuple[Facts, dict[str, str]], cut: float) -> None:
    # Time enough to read back, as slow as this machine may be now: the timer starts amid the run.
    timer_s = 30 + int(1.5 * cut)
    killed(guest, timer_s)
    taken_back(guest, before, timer_s + 600)


def test_the_next_run_is_not_in_the_way_of_the_dead_one(
    guest: Guest, before: tuple[Facts, dict[str, str]]
) -> None:
    """An orderly reboot this time; the next apply ends what the dead run left and brings the wish."""
    killed(guest, 3600)
    guest.machine.reboot()
    guest.machine.root("rm /usr/local/bin/sudo")
    ran = guest.apply()
    assert guest.row(ran)["status"] in ("applied", "pending-reset"), ran.text
    assert guest.facts().mtu["data0"] == 9000 and not guest.pending()
    guest.machine.reboot()
    assert guest.drift(status=0).drifts == {}
