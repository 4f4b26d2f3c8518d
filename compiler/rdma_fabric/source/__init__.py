"""The strict loader: YAML and CSV files become data with a position for every key and value.

Everything wrong in a file is collected and leaves as findings in an `InputError`.
"""

from rdma_fabric.source.csv_file import Row, Table, load_csv, parse_csv
from rdma_fabric.source.text import FINDINGS_LIMIT, excerpt, file_error
from rdma_fabric.source.validation import validate
from rdma_fabric.source.yaml_file import DataPath, Document, load_yaml, parse_yaml

__all__ = [
    "FINDINGS_LIMIT",
    "DataPath",
    "Document",
    "Row",
    "Table",
    "excerpt",
    "file_error",
    "load_csv",
    "load_yaml",
    "parse_csv",
    "parse_yaml",
    "validate",
]
