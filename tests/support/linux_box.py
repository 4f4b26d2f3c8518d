"""A Linux host in memory: its files and live values, and what the questions of the platform print of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdma_fabric.hardware import Hardware
from rdma_fabric.platforms._contract import Call, Change, Put
from rdma_fabric.platforms.linux import PLATFORM
from rdma_fabric.state import Observation

FOLDERS = {
    "sysctl.d": ("/sysctl.d/",),
    "sysctl.conf": ("/etc/sysctl.conf",),
    "modules-load.d": ("/modules-load.d/",),
    "modprobe.d": ("/modprobe.d/",),
    "limits.d": ("/etc/security/limits",),
    "environment": ("/etc/environment", "/etc/security/pam_env.conf", "/etc/profile", "bashrc"),
    "units": ("/systemd/system/",),
    "networkd": (".network",),
    "drop-ins": (".network.d/",),
    "links": (".link",),
    "nmconf": ("/NetworkManager/conf.d/", "NetworkManager.conf"),
    "ifupdown": ("/etc/network/interfaces",),
    "ifcfg": ("/ifcfg-",),
}
"""Section -> what the paths of its files hold; printed with line numbers."""
WHOLE = {
    "netplan": ("/netplan/",),
    "ours": ("/etc/netplan/zz-fabric", "/etc/NetworkManager/conf.d/zz-fabric", "/etc/fabric/mtu.conf"),
}
OF_THE_NODE = (
    "/etc/sysctl.d/zz-fabric.conf",
    "/etc/modules-load.d/90-fabric.conf",
    "/etc/modprobe.d/zz-fabric.conf",
    "/etc/security/limits.d/zz-fabric.conf",
    "/etc/nccl.conf",
    "/etc/profile.d/fabric-rdma.sh",
)
LINK = "/etc/systemd/system/sys-subsystem-net-devices-{0}.device.wants/fabric-mtu@{0}.service"


@dataclass(frozen=True)
class Box:
    """`parts` replaces whole sections: text, or text and status; None leaves one out."""

    files: Mapping[str, str] = field(default_factory=dict)
    sysctl: Mapping[str, str] = field(default_factory=lambda: {"net.ipv4.tcp_ecn": "2"})
    modules: tuple[str, ...] = ("ib_core", "ib_uverbs")
    options: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    enabled: tuple[str, ...] = ()
    parts: Mapping[str, str | tuple[str, int] | None] = field(default_factory=dict)

    def sections(self, hw: Hardware) -> dict[str, str | tuple[str, int] | None]:
        """Every section by name."""
        found: dict[str, str | tuple[str, int] | None] = {
            "kernel": "6.1.0-18-amd64",
            "os": 'ID=debian\nVERSION_ID="12"\n',
            "agents": ("", 1),
            "files": _printed({path: text for path, text in self.files.items() if path in OF_THE_NODE}),
            "cmdline": ("", 1),
            "sysctl": "\n".join(f"{key} = {value}" for key, value in self.sysctl.items()),
            "modules": "\n".join(self.modules),
            "options": "\n".join(f"{key}={value}" for key, value in self.options.items()),
            "services": "",
            "wants": "\n".join(LINK.format(name) for name in self.enabled),
            "names": "\n".join(["lo", "mgmt0", *(port.name for port in hw.ports)]),
            "session": ("", 3),
            "active": "systemd-networkd active enabled\nNetworkManager inactive disabled",
            "networkmanager": ("", 3),
            "ifupdown2": ("", 127),
        }
        for name, holds in FOLDERS.items():
            chosen = {path: text for path, text in self.files.items() if any(word in path for word in holds)}
            if name == "networkd":
                chosen = {path: text for path, text in chosen.items() if path.endswith(".network")}
            found[name] = _printed(chosen, numbered=True)
        for name, holds in WHOLE.items():
            found[name] = _printed({p: t for p, t in self.files.items() if any(w in p for w in holds)})
        for port in hw.ports:
            link = {"ifname": port.name, "mtu": 1500, **self.links.get(port.name, {})}
            found[f"link {port.name}"] = json.dumps([link])
            found[f"speed {port.name}"] = "400000"
            found[f"below {port.name}"] = ("", 1)
            found[f"network {port.name}"] = ("", 1)
        return {**found, **self.parts}

    def observe(self, hw: Hardware) -> Observation:
        """As the platform reads it; the first question's answer holds everything."""
        text = ""
        for name, given in self.sections(hw).items():
            if given is not None:
                body, status = given if isinstance(given, tuple) else (given, 0)
                text += f"@@{name}\n{body}\n@={status}\n"
        return PLATFORM.parse({PLATFORM.questions(hw)[0]: text}, hw)

    def after(self, change: Change, hw: Hardware) -> Box:
        """The host once the change was carried out: files, sysctls, modules, MTUs, units."""
        files, sysctl, modules = dict(self.files), dict(self.sysctl), list(self.modules)
        links = {name: dict(link) for name, link in self.links.items()}
        enabled = list(self.enabled)
        for step in change.commit:
            if isinstance(step, Put):
                files.pop(step.path, None)
                files.update({step.path: step.text} if step.text is not None else {})
            elif isinstance(step, Call):
                words = step.argv
                if words[:2] == ("sysctl", "-w"):
                    key, _, value = words[2].partition("=")
                    sysctl[key] = value
                elif words[0] == "modprobe":
                    modules.append(words[1])
                elif words[:3] == ("ip", "link", "set"):
                    links.setdefault(words[4], {})["mtu"] = int(words[6])
                    for port in hw.ports:
                        if port.name == words[4] and port.kind == "bond":
                            for member in port.members:
                                links.setdefault(member, {})["mtu"] = int(words[6])
                elif words[:2] == ("systemctl", "enable"):
                    enabled.append(words[2].removeprefix("fabric-mtu@").removesuffix(".service"))
        return replace(
            self, files=files, sysctl=sysctl, modules=tuple(modules), links=links, enabled=tuple(enabled)
        )


def _printed(files: Mapping[str, str], *, numbered: bool = False) -> str:
    """Each file after "==PATH"; numbered: as `grep -n` shows the lines that say something."""
    found = ""
    for path, text in files.items():
        rows = text.splitlines()
        if numbered:
            rows = [
                f"{number}:{row}"
                for number, row in enumerate(rows, 1)
                if row.strip() and row.strip()[0] not in "#;"
            ]
        found += "\n".join([f"=={path}", *rows, "", ""])
    return found
