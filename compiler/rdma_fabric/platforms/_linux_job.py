"""The environment of jobs on a Linux host: variables of NCCL and UCX in files of ours and of others.

Sources: NCCL src/os/linux.cc (a value of the environment wins over ~/.nccl.conf and /etc/nccl.conf);
pam_env(8); bash(1), which reads /etc/profile, and with it /etc/profile.d/*.sh by name.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

from rdma_fabric.platforms._host_qos import ECT0
from rdma_fabric.platforms._linux_boot import Lines, Setting
from rdma_fabric.platforms._linux_names import PATHS

PLACES: Final = (
    "/etc/security/pam_env.conf",
    "/etc/environment",
    "/etc/profile",
    "/etc/profile.d/*.sh",
    "/etc/bash.bashrc",
    "/etc/bashrc",
)
"""Files that give every login variables, in the order in which they are read."""
CONF_FILE: Final = "NCCL_CONF_FILE"
"""Names another file that NCCL reads before /etc/nccl.conf."""
_TOS: Final = frozenset({"NCCL_IB_TC", "NCCL_IB_FIFO_TC", "UCX_IB_TRAFFIC_CLASS"})
_ASSIGNED: Final = re.compile(r"(?:export\s+)?((?:NCCL|UCX)_\w+)=(\S*|\"[^\"]*\"|'[^']*')\s*(?:#.*)?")
_BRANCH: Final = re.compile(r"(if|case|for|while|until)\b")
_NAMED: Final = re.compile(r"\b((?:NCCL|UCX)_\w+)")


def meant(name: str, value: str) -> str:
    """A value as it compares and is written: the ECN bits of a ToS byte are always ECT(0)."""
    # A leading zero means octal to NCCL: such a value stays as it is.
    if name not in _TOS or not re.fullmatch(r"0|[1-9][0-9]{0,2}", value) or int(value) > 255:
        return value
    dscp = int(value) & 0xFC
    return str(dscp | ECT0 if dscp else 0)


def unquoted(value: str) -> str:
    """A value as a shell takes it; as it stands where it is more than one word."""
    try:
        words = shlex.split(value)
    except ValueError:
        return value
    return words[0] if len(words) == 1 else value


def exports(found: Lines) -> dict[str, Setting]:
    """Variables that files of others set and that win over ours; value "" where it is not understood."""
    chosen: dict[str, Setting] = {}
    branches = set()
    for path, number, text in sorted(found.rows, key=lambda row: (_rank(row[0]), row[0], row[1])):
        if path == PATHS.profile or text.startswith("#"):
            continue
        if _BRANCH.match(text):
            branches.add(path)
        for name, value in _assigned(text).items():
            if _wins(name, path):
                # Below an `if` nobody knows whether it is carried out.
                chosen[name] = Setting("" if path in branches else value, path, number)
    return chosen


def _assigned(text: str) -> dict[str, str]:
    whole = _ASSIGNED.fullmatch(text)
    if whole is None:
        return dict.fromkeys(_NAMED.findall(text), "")
    value = unquoted(whole.group(2))
    return {whole.group(1): "" if re.search(r"[$`\\;&|<>()\"']", value) else value}


def _rank(path: str) -> int:
    folder = path.rpartition("/")[0]
    return next((at for at, one in enumerate(PLACES) if one in (path, f"{folder}/*.sh")), len(PLACES))


def _wins(name: str, path: str) -> bool:
    """All of them win over /etc/nccl.conf; over our file of variables those that are read after it."""
    return name.startswith("NCCL_") or (_rank(path), path) > (_rank(PATHS.profile), PATHS.profile)
