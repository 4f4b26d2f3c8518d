"""Finds the files that travel with the code: jinja2 templates and playbooks. Never write there."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_CHECKOUT = _HERE.parents[1]


class AssetMissing(LookupError):
    """A folder that belongs to the installation is not there; the text says what to do."""


def templates() -> Path:
    """Folder with one sub-folder of jinja2 templates per platform; raises AssetMissing."""
    return folder("templates")


def playbooks() -> Path:
    """Folder with the playbooks that ansible-runner runs; raises AssetMissing."""
    return folder("playbooks")


def folder(name: str) -> Path:
    """Asset folder `name`: from the wheel, else from the checkout; raises AssetMissing."""
    installed = _HERE / "_assets" / name
    if installed.is_dir():
        return installed
    in_checkout = _CHECKOUT / name
    # Without pyproject.toml beside it, a folder of that name is somebody else's.
    if (_CHECKOUT / "pyproject.toml").is_file() and in_checkout.is_dir():
        return in_checkout
    raise AssetMissing(
        f"the folder {name!r} of rdma-fabric is missing (looked at {installed} and {in_checkout}); "
        "the installation is incomplete: reinstall it with 'pip install --force-reinstall rdma-fabric', "
        f"or restore {name}/ in the checkout"
    )
