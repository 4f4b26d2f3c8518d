"""A small InfiniBand subnet that real OpenSM programs, on ibsim: three hosts at one switch."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HOSTS = {"sm": "0x0002c90300000011", "a": "0x0002c90300000021", "b": "0x0002c90300000031"}
"""Name -> port GUID; OpenSM runs on the first one."""
_NET = "\n".join(
    [
        'switchguid=0x0002c90300000100\nSwitch\t4 "leaf"',
        *(f'[{number}]\t"{name}"[1]' for number, name in enumerate(HOSTS, 1)),
        *(
            f'\ncaguid=0x{int(guid, 16) - 1:016x}\nHca\t1 "{name}"\n[1]\t"leaf"[{number}]'
            for number, (name, guid) in enumerate(HOSTS.items(), 1)
        ),
        "",
    ]
)
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


def missing() -> str:
    """Why there is no such subnet here; "" where there is."""
    tools = [name for name in ("ibsim", "opensm", "smpquery") if shutil.which(name, path=_PATH) is None]
    if not tools and _library():
        return ""
    return "opensm, ibsim-utils and infiniband-diags are not installed (scripts/packages.txt)"


def _library() -> str:
    return next(iter(glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")), "")  # noqa: PTH207


@dataclass(frozen=True)
class Subnet:
    """The simulated hardware; files of OpenSM lie in `folder`."""

    folder: Path

    def _environment(self, host: str) -> dict[str, str]:
        cache = f"{self.folder}/"
        return {
            "PATH": _PATH,
            "LD_PRELOAD": _library(),
            "SIM_HOST": host,
            "IBSIM_SOCKNAME": self.folder.name,
            "OSM_CACHE_DIR": cache,
            "OSM_TMP_DIR": cache,
        }

    def ask(self, host: str, *words: str) -> str:
        """What a tool on a host prints."""
        done = subprocess.run(
            words, env=self._environment(host), capture_output=True, text=True, timeout=20, check=False
        )
        return done.stdout + done.stderr

    def sweep(self, partitions: str, options: str = "") -> str:
        """OpenSM programs the subnet once with these files; what it prints and logs."""
        return self.ask("sm", *self._command(partitions, options), "-o") + self._log()

    @contextmanager
    def manager(self, partitions: str, options: str = "") -> Iterator[None]:
        """OpenSM runs while the block does."""
        command = self._command(partitions, options)
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, env=self._environment("sm"), stdout=quiet, stderr=quiet)
        try:
            _until(lambda: "SUBNET UP" in self._log())
            yield
        finally:
            process.terminate()
            process.wait(10)

    def _command(self, partitions: str, options: str) -> list[str]:
        file, conf, log = (self.folder / name for name in ("partitions.conf", "opensm.conf", "log"))
        file.write_text(partitions, encoding="utf-8")
        conf.write_text(f"partition_config_file {file}\n{options}", encoding="utf-8")
        log.unlink(missing_ok=True)
        return ["opensm", "-F", str(conf), "-f", str(log)]

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def keys(self, host: str) -> tuple[int, ...]:
        """P_Key table of the host's port in its order, without empty entries."""
        words = re.findall(r"0x([0-9a-f]{4})\b", self.ask(host, "smpquery", "-D", "pkeys", "0", "1"))
        return tuple(int(word, 16) for word in words if int(word, 16))


def _until(what: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        if time.monotonic() > end:
            pytest.fail(f"still not so after {seconds} s")
        time.sleep(0.02)


@contextmanager
def subnet(folder: Path) -> Iterator[Subnet]:
    """The hardware is there while the block runs."""
    net, log = folder / "net", folder / "ibsim.log"
    net.write_text(_NET, encoding="utf-8")
    command: Sequence[str] = ("ibsim", "-s", "-n", str(net))
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env={"PATH": _PATH, "IBSIM_SOCKNAME": folder.name}, stdout=out, stderr=out
        )
    try:
        _until(lambda: b"Network simulator ready" in log.read_bytes())
        yield Subnet(folder)
    finally:
        process.terminate()
        process.wait(10)
