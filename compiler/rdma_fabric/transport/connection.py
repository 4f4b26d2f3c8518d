"""One SSH connection: own socket, strict host key, our order of logins, plain words for every trouble."""

from __future__ import annotations

import errno
import logging
import random
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import paramiko

from rdma_fabric.transport.credentials import Secrets
from rdma_fabric.transport.errors import TransportError
from rdma_fabric.transport.known_hosts import HostKey, Known, known
from rdma_fabric.transport.proxy import Through, proxy_command
from rdma_fabric.transport.targets import Target

# paramiko logs tracebacks of broken connections; what matters of them is in our own errors.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

_RETRIES: Final = 2
_PAUSE_S: Final = 0.3
# sshd counts tries and ends the connection at MaxAuthTries, 6 unless configured (sshd_config(5)).
_MOST_KEYS: Final = 4
_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256")  # RFC 8332: signatures of an ssh-rsa key
_WORDS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "no route to the network",
    errno.EADDRNOTAVAIL: "no such address here",
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection reset",
    errno.ETIMEDOUT: "no answer",
}


class _Again(TransportError):
    """The connection broke before the login: a busy server does that, another try may work."""


def connect(target: Target, secrets: Secrets, *, timeout_s: float) -> paramiko.Transport:
    """A connection that is logged in; TransportError otherwise."""
    credentials = secrets.identity(target)
    trusted = known(target.known_hosts, target.host, target.port)
    secrets.gate.wait(credentials)
    transport = _reach(target, trusted, timeout_s)
    try:
        verify(target, remote_key(transport), trusted)
        with secrets.gate.login(credentials, target.name):
            _log_in(transport, target, secrets)
    except BaseException:
        transport.close()
        raise
    return transport


def handshake(target: Target, trusted: Known, timeout_s: float) -> paramiko.Transport:
    """Connect and exchange keys, no login. TransportError "unreachable"."""
    connection = _dial(target, timeout_s)
    try:
        disabled = target.connection_options.get("disabled_algorithms")
        transport = paramiko.Transport(connection, disabled_algorithms=disabled)
        transport.banner_timeout = target.seconds("banner_timeout", timeout_s)
        transport.auth_timeout = target.seconds("auth_timeout", 30.0)
        options = transport.get_security_options()
        options.key_types = _preferred(options.key_types, trusted)
    except BaseException:
        connection.close()
        raise
    try:
        transport.start_client(timeout=timeout_s)
        if not transport.initial_kex_done:
            raise TransportError("unreachable", f"{target}: no SSH answer within {timeout_s:g} s")
    except (OSError, EOFError) as error:
        why = _proxy_said(connection)
        transport.close()
        raise _Again("unreachable", f"{target}: the connection ended before SSH began{why}") from error
    except paramiko.SSHException as error:
        why = _proxy_said(connection)
        transport.close()
        raise _no_ssh(target, error, why) from error
    except BaseException:
        transport.close()
        raise
    return transport


def remote_key(transport: paramiko.Transport) -> HostKey:
    """The key that the server proved to hold."""
    key = transport.get_remote_server_key()
    return HostKey(key.get_name(), key.asbytes())


def verify(target: Target, key: HostKey, trusted: Known) -> None:
    """TransportError "hostkey" unless the key is one that the files name for this host."""
    if key in trusted.revoked:
        raise TransportError("hostkey", f"{target}: its host key {key.fingerprint} is marked as revoked")
    if key in trusted.keys:
        return
    if trusted.keys:
        text = f"{target}: its host key changed to {key.type} {key.fingerprint}"
    else:
        text = f"{target}: its host key {key.type} {key.fingerprint} is not known"
    help = "compare it with the device's own, then record it with 'fabric hostkeys'"
    raise TransportError("hostkey", f"{text}; {help}")


def _reach(target: Target, trusted: Known, timeout_s: float) -> paramiko.Transport:
    """A handshake, tried again when the server hung up before any login."""
    for attempt in range(_RETRIES):
        try:
            return handshake(target, trusted, timeout_s)
        except _Again:
            time.sleep(_PAUSE_S * 2**attempt * random.uniform(0.5, 1.5))
    return handshake(target, trusted, timeout_s)


def _dial(target: Target, timeout_s: float) -> Any:
    """A TCP connection that sends small packets at once, or the proxy of the user's SSH configuration."""
    proxy = proxy_command(target)
    if proxy:
        try:
            return Through(proxy)
        except (OSError, ValueError, IndexError) as error:
            raise TransportError("unreachable", f"{target}: {_way(proxy)} does not start: {error}") from error
    timeout = target.seconds("conn_timeout", timeout_s)
    try:
        connection = socket.create_connection((target.host, target.port), timeout)
    except socket.gaierror as error:
        raise TransportError("unreachable", f"the name {target.host} does not resolve") from error
    except TimeoutError as error:
        raise TransportError("unreachable", f"{target}: no answer within {timeout:g} s") from error
    except OSError as error:
        words = _WORDS.get(error.errno or 0, error.strerror or "no connection")
        kind = _Again if error.errno == errno.ECONNRESET else TransportError
        raise kind("unreachable", f"{target}: {words}") from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _way(proxy: str) -> str:
    """The proxy's program; its words may hold what is nobody's business."""
    return f"the proxy {(proxy.split() or [''])[0]}"


def _proxy_said(connection: Any) -> str:
    said = connection.said() if isinstance(connection, Through) else ""
    return f" (the proxy says: {said})" if said else ""


def _preferred(types: Any, trusted: Known) -> tuple[str, ...]:
    """Key types that we know of this host first, so that the server shows a key we can compare."""
    wanted: set[str] = set()
    for key in trusted.keys:
        wanted.update(_RSA if key.type == "ssh-rsa" else (key.type,))
    return tuple(sorted(types, key=lambda one: one not in wanted))


def _no_ssh(target: Target, error: paramiko.SSHException, why: str) -> TransportError:
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        return TransportError("unreachable", f"{target}: no common SSH algorithm ({error})")
    if "banner" in str(error):
        return _Again("unreachable", f"{target}: no SSH server answered{why}")
    return TransportError("unreachable", f"{target}: SSH did not start ({error}){why}")


# -- login


def _log_in(transport: paramiko.Transport, target: Target, secrets: Secrets) -> None:
    """Keys first, then the password (also by keyboard-interactive)."""
    user = secrets.username(target)
    tried = []
    try:
        for key in _keys(target, secrets):
            tried.append("key")
            try:
                if not transport.auth_publickey(user, key):
                    return
            except paramiko.BadAuthenticationType:
                break
            except paramiko.AuthenticationException:
                continue
        password = secrets.password(target)
        if password:
            tried.append("password")
            if not transport.auth_password(user, password):
                return
    except paramiko.AuthenticationException as error:
        raise _refused(target, user, tried) from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        if tried and not transport.is_active():
            raise _refused(target, user, tried) from error
        raise TransportError("closed", f"{target}: the connection ended during the login") from error
    raise _refused(target, user, tried)


def _keys(target: Target, secrets: Secrets) -> Iterator[paramiko.PKey]:
    keys = list(secrets.keys(target))
    if secrets.agent(target):
        with suppress(paramiko.SSHException):  # an agent that does not speak is as good as none
            keys = [*paramiko.Agent().get_keys(), *keys]
    yield from keys[:_MOST_KEYS]


def _refused(target: Target, user: str, tried: list[str]) -> TransportError:
    if not tried:
        text = (
            "there is nothing to log in with: set FABRIC_PASSWORD or FABRIC_KEY_FILE, or start an SSH agent"
        )
        return TransportError("auth", f"{target}: {text}")
    ways = " and ".join(dict.fromkeys(tried))
    return TransportError("auth", f"{target}: the login of {user} by {ways} was refused")
