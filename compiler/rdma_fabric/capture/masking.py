"""Masks secrets in device output: by the words that stand before them, by their own form, and in JSON by key.

It masks too much rather than too little: everything after such a word goes, and everything below such a key.
The own secrets of the session (`transport.credentials.scrub`) go first and in every case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

MASK: Final = "****"
_WORD: Final = (
    r"passw(?:or)?ds?|passwd|passphrase|passkey|secrets?|communit(?:y|ies)|pre-?shared-?keys?|psk|tokens?"
    r"|credentials?|private(?:-key)?|(?:auth|encryption|api|ssh|host|enc|pub|public|authorized)[-_]?keys?"
    r"|keys?(?=\s+(?:[0-9]|\")|\s*[:=])|hash(?:ed)?(?:[-_]password)?|md5|sha-?\d{1,3}|usernames?|user(?=\s)"
    r"|tacacs\S*|radius\S*|snmp\S*|certificates?|serial(?:\s*number)?|localized"
)
_AFTER: Final = re.compile(rf"(?i)(?<![a-z])({_WORD})(?![a-z])([\"'\s:=|]+)(\S.*)$")
"""A word that announces a secret, what separates it, and the rest of the line."""
_FORMS: Final = (
    re.compile(r"\$[0-9a-z]{1,8}\$[^\s\"',]{4,}"),  # crypt(5)
    re.compile(r"ssh-(?:rsa|ed25519|dss) [A-Za-z0-9+/=]{20,}[^\n]*|ecdsa-sha2-\S+ [A-Za-z0-9+/=]{20,}[^\n]*"),
    re.compile(r"(?i)(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"),  # user:password@host
    re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),  # a JSON web token
)
_PEM: Final = re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL)
_KEY: Final = re.compile(rf"(?i)(?:^|[^a-z])(?:{_WORD}|keys?)(?:$|[^a-z])")
_SECTION: Final = re.compile(r"(?i)^(?:AAA|TACPLUS|RADIUS|SNMP|LDAP|PASSW|SSH_SERVER|USER|MACSEC)")


def mask(text: str, own: Callable[[str], str] = str) -> str:
    """The text without secrets; JSON stays JSON. `own` masks what this run itself logs in with."""
    text = own(text)
    try:
        data = json.loads(text)
    except ValueError:
        return _mask_text(text)
    if not isinstance(data, dict | list):
        return _mask_text(text)
    return json.dumps(_mask_data(data), indent=1)


def _mask_text(text: str) -> str:
    text = _PEM.sub(MASK, text)
    for form in _FORMS:
        text = form.sub(MASK, text)
    return "\n".join(_mask_line(line) for line in text.split("\n"))


def _mask_line(line: str) -> str:
    found = _AFTER.search(line)
    if not found:
        return line
    closing = re.search(r"[\"'],?\s*[}\]]*,?$", found[3])
    return f"{line[: found.start(3)]}{MASK}{closing[0] if closing else ''}"


def _mask_data(data: Any) -> Any:
    if isinstance(data, dict):
        return {_mask_text(str(key)): _below(str(key), value) for key, value in data.items()}
    if isinstance(data, list):
        return [_mask_data(one) for one in data]
    if isinstance(data, str):
        return _mask_text(data)
    return data


def _below(key: str, value: Any) -> Any:
    """What stands below a key; of a table of secrets not even the names of its rows stay."""
    if _SECTION.match(key) and isinstance(value, dict | list):
        return MASK
    if _KEY.search(key) and not isinstance(value, bool | int | float):
        return MASK
    return _mask_data(value)
