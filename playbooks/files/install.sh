#!/bin/sh
# Installs the host settings of this bundle and makes them work; says as JSON what it did. Usage:
#   ./install.sh                the running host: what differs is written and made to work at once
#   ./install.sh --offline      the running host: files only, which count from the next boot on
#   ./install.sh --root DIR     a system in DIR, as an image build has it: files only
# With --check nothing is written. Exit code 0: it is so now; 1: refused, or taken back; else it could not run.
case "${1-}" in -h | --help) sed -n '2,/^# With/s/^# //p' "$0" && exit 0 ;; esac
here=$(cd "$(dirname "$0")" && pwd) || exit 2
if ! (cd "$here" && sha256sum -c --quiet SHA256SUMS) >&2; then
    echo '{"version": 1, "changed": false, "refused": "the bundle is damaged: its checksums do not fit"}'
    exit 1
fi
exec "${PYTHON:-python3}" "$here/fabric-host" install "$here/bundle.json" "$@"
