"""Mistakes in URLs, named so that their authors find them. No message has a password, however a URL is spelled."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from groupmq.core.errors import ConfigurationError

SCHEMES = "redis://, rediss://, valkey://, valkeys://, unix://, redis+sentinel://, redis+cluster:// or embedded://"
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


def no_address(url: str) -> ConfigurationError:
    """The error for a URL that cannot be read."""
    wanted = f"a URL ({SCHEMES}; special characters percent-encoded)"
    return ConfigurationError.expected("redis", wanted, without_secrets(url))


def without_secrets(url: str) -> str:
    """A URL that may be wrong in any way, without what could be a password."""
    scheme, found, rest = url.rpartition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2].partition('?')[0]}"


def require_database(url: str) -> None:
    """Refuse a URL whose path is not a database number: the client library would use the first database."""
    parts = urlsplit(url)
    if parts.scheme != "unix" and not re.fullmatch(r"/?|/\d+", parts.path):
        raise ConfigurationError.expected("redis", "a database number after the host", parts.path.lstrip("/"))
    if parts.scheme != "unix":
        require_one_database(parts.path.strip("/"), url)


def require_one_database(path: str, url: str) -> None:
    """Refuse a URL that names two databases: the client library would use the second, and its path would be shown."""
    other = dict(parse_qsl(urlsplit(url).query)).get("db", "")
    if path and other.isdecimal() and int(other) != int(path):
        raise ConfigurationError(f"redis: the URL names database {path}, and {other} after its '?'; leave one out")


def wrong_option(error: ValueError, url: str) -> ConfigurationError | None:
    """The message for a port or an option of a URL that is refused; None if it is neither."""
    if isinstance(error, ConfigurationError):
        return error
    if str(error).startswith("Port "):
        wanted = "a number from 1 to 65535 as the port of a URL (special characters of a password percent-encoded)"
        return ConfigurationError.expected("redis", wanted, without_secrets(url))
    named = re.search(r"Invalid value for ['`](\w+)['`]", str(error))
    if named is None:
        return None
    value = dict(parse_qsl(urlsplit(url).query)).get(named[1], "")
    shown = "" if "password" in named[1] else f": {value!r}"
    return ConfigurationError(f"redis: {named[1]} has a wrong value after the '?' of the URL{shown}")


def require_known_options(pool: Any) -> None:
    """Refuse a URL with an option that no connection takes: the client library reports it only at the first call."""
    try:
        pool.connection_class(**pool.connection_kwargs)
    except TypeError as error:
        named = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        what = f"unknown option {named[1]!r}" if named else f"a wrong option ({error})"
        raise ConfigurationError(f"redis: {what} after the '?' of the URL; remove it") from None


def require_files(pool: Any) -> None:
    """Refuse a certificate or key that cannot be read: the client library would not name it."""
    for option in _FILES:
        path = pool.connection_kwargs.get(option)
        if path is not None and not os.access(path, os.R_OK):
            what = "does not exist" if not os.path.exists(path) else "cannot be read"
            raise ConfigurationError(f"redis: {option} names {path!r}, which {what}")
