"""What a config says of an endpoint: the address, and the variables that hold the key and further headers.

No message shows a value that may be secret.
"""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import ValidationInfo

from codechat.base.config import WHERE
from codechat.base.errors import UserError
from codechat.models.endpoints import key_of

if TYPE_CHECKING:
    from codechat.models.remote import EndpointConfig

SECRETS = ("key", "token", "secret", "password", "pwd", "sig", "signature", "auth", "authorization", "code")
"""Ends of the names of a query's parameters that hold secrets."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2
OF_THE_CONNECTION = (
    "host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding", "expect", "te",
    "trailer", "upgrade", "keep-alive",
)  # fmt: skip
"""Headers that the HTTP client sets."""


def plain_address(value: str | None, info: ValidationInfo) -> str | None:
    """The address without a slash at its end. Raises `UserError` or `ValueError`."""
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("an address is needed, like http://127.0.0.1:8000/v1")
    if "@" in parts.netloc:  # not shown again: it is a secret
        raise UserError(
            f"{_key(info)} holds a user name or password",
            f"name a variable that holds it in {_key(info, 'api_key_env')}",
        )
    if parts.fragment or "#" in value:
        raise UserError(f"{_key(info)} has a part after #", "leave it out: endpoints never see it")
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if secret := next((name for name in names if name.lower().endswith(SECRETS)), None):
        raise UserError(
            f"the query of {_key(info)} has '{secret}', which is a secret, and addresses are recorded",
            f"put it into a variable, and give the variable's name in {_key(info, 'api_key_env')}",
        )
    path = parts.path.rstrip("/")
    return parts._replace(path=path).geturl()


def header_variables(headers: Any, info: ValidationInfo) -> Any:
    """Checked here alone, because pydantic's messages quote the option, which may hold a value."""
    if not isinstance(headers, Mapping):
        raise UserError(f"{_key(info)} must be names with variables", "e.g. {X-Title: MY_VARIABLE}")
    for name, variable in headers.items():
        if not HEADER.fullmatch(str(name)) or str(name).lower() in OF_THE_CONNECTION:
            raise UserError(
                f"{_key(info)}: '{name}' is no header of your own", "letters, digits and hyphens, e.g. X-Title"
            )
        if not VARIABLE.fullmatch(str(variable)):
            raise UserError(
                f"{_key(info)}.{name} is not the name of an environment variable",
                f"put the value into a variable and give its name, e.g. {{{name}: MY_VARIABLE}}",
            )
    if len({str(name).lower() for name in headers}) < len(headers):
        raise UserError(f"{_key(info)} names a header twice, in capital and in small letters", "leave one out")
    return headers


def variable_name(value: str | None, info: ValidationInfo) -> str | None:
    """The name of an environment variable. Raises `UserError`."""
    if value is not None and not VARIABLE.fullmatch(value):  # not shown: it may be the key
        raise UserError(
            f"{_key(info)} is not the name of an environment variable",
            "put the key into a variable, e.g. OPENAI_API_KEY, and give its name; null if no key is needed",
        )
    return value


def _key(info: ValidationInfo, option: str = "") -> str:
    """The whole key of the checked option, or of another option of the config, for messages."""
    place = (info.context or {}).get(WHERE)
    name = option or str(info.field_name)
    return f"{place}.{name}" if place else name


def key_from_environment(config: "EndpointConfig") -> str | None:
    """The key in the variable that the config names; None without a name. Raises `UserError`."""
    variable = config.api_key_env
    if variable is None:
        return None
    without = f"set {key_of(config, 'api_key_env')}=null for an endpoint without keys"
    return _value(config, variable, "a key", "a key", without)


def headers_from_environment(config: "EndpointConfig") -> dict[str, str]:
    """The further headers of every request, with their values. Raises `UserError` for a variable without one."""
    place = key_of(config, "headers")
    return {
        name: _value(config, variable, f"the header {name}", "a header's value", f"leave {name} out of {place}")
        for name, variable in config.headers.items()
    }


def _value(config: "EndpointConfig", variable: str, needed: str, held: str, otherwise: str) -> str:
    """The value of an environment variable. Raises `UserError` if there is none that a request can hold."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UserError(
            f"{config.place} needs {needed}, and the environment variable {variable} is not set",
            f"export {variable}=…, or {otherwise}",
        )
    if not (value.isascii() and value.isprintable()):
        raise UserError(
            f"the environment variable {variable} does not hold {held}: it has unprintable characters",
            f"export {variable}=… with letters, digits and signs of ASCII alone",
        )
    return value
