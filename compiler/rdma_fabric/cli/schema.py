"""`fabric schema`: JSON Schema for editors."""

from __future__ import annotations

import argparse

from rdma_fabric.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `fabric schema`."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=("intent", "inventory"),
        default="intent",
        help="which file (default: intent)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-color", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Prints the schema; always 0."""
    import json

    from pydantic import TypeAdapter

    from rdma_fabric.intent.models import Intent
    from rdma_fabric.inventory.models import Entry

    if options.what == "intent":
        schema = Intent.model_json_schema(mode="validation")
        title = "fabric.yaml, version 1"
    else:
        schema = TypeAdapter(dict[str, Entry]).json_schema(mode="validation")
        title = "hosts.yaml and groups.yaml"
    full = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}
    common.output(options).data(json.dumps(full, indent=1, sort_keys=True))
    return 0
