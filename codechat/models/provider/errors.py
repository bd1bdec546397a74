"""What pydantic-ai's errors mean, in the words of `codechat.models.remote.refusals`.

No exception that is raised here is chained to the library's, whose text may quote the key.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from codechat.errors import UserError
from codechat.models.remote import Refused
from codechat.models.remote.failures import Failures
from codechat.models.remote.refusals import INVALID_KEY, NO_QUOTA, TOO_LONG, UNKNOWN_MODEL, Refusal

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelHTTPError

OTHER_SHAPES = (ValidationError, ValueError, LookupError, TypeError, AttributeError)
"""What reading a body of another shape raises: the providers' libraries make their objects unchecked."""


@contextmanager
def translated(failures: Failures, mistakes: tuple[type[Exception], ...], *, is_first: bool) -> Iterator[None]:
    """Raise the library's errors as `Refused`, `Passing` or `UserError`.

    `is_first`: nothing has been reached yet, so that an address without a server is the user's mistake. `mistakes` are
    further exceptions, which tell of credentials.
    """
    from pydantic_ai import exceptions

    try:
        yield
    except exceptions.ModelHTTPError as error:
        raised: Exception = Refused(refusal_of(error), _headers(error))
        if error.suggested_model_id is not None:
            failures.served = (error.suggested_model_id.partition(":")[2],)
    except exceptions.ModelConnectionError as error:
        unreached = error.phase == "connect"
        cause = _cause(error)
        if unreached and is_first:
            raised = failures.of_nobody(cause)
        else:
            raised = failures.of_unreachable(cause) if unreached else failures.of_connection(cause)
    except (exceptions.ModelAPIError, exceptions.UnexpectedModelBehavior) as error:
        raised = _of_redirect(error) or failures.of_answer(str(error))
    except exceptions.UserError as error:
        raised = UserError(failures.redact(str(error)), "change the model's options")
    except mistakes as error:
        raised = UserError(failures.redact(f"{type(error).__name__}: {error}"), "check the credentials")
    except OTHER_SHAPES as error:
        raised = failures.of_answer(f"the answer has another shape than the provider's ({type(error).__name__})")
    else:
        return
    raise raised from None


def refusal_of(error: "ModelHTTPError") -> Refusal:
    """What an HTTP error says. A status that the provider's own words contradict becomes the usual one."""
    from pydantic_ai import exceptions

    status = error.status_code
    if isinstance(error, exceptions.ModelRateLimitError):
        status = 429
    elif isinstance(error, exceptions.ModelUnavailableError | exceptions.ModelServerError) and status < 500:
        status = 503
    codes = {
        exceptions.ModelContextWindowExceededError: TOO_LONG,
        exceptions.ModelQuotaExceededError: NO_QUOTA,
        exceptions.ModelAuthenticationError: INVALID_KEY,
        exceptions.ModelNotFoundError: UNKNOWN_MODEL,
    }
    code = next((code for kind, code in codes.items() if isinstance(error, kind)), error.provider_error_code or "")
    return Refusal(status, " ".join(_said(error.body).split()), code)


def _of_redirect(error: Exception) -> Refused | None:
    """A redirect, which the library takes for no HTTP error."""
    status = getattr(error.__cause__, "status_code", None) or getattr(error.__cause__, "code", None)
    return Refused(Refusal(status, ""), {}) if isinstance(status, int) and 300 <= status < 400 else None


def _said(body: Any) -> str:
    """The message in an error's body: of Anthropic and Google under `error`, of Bedrock under `Error`."""
    if isinstance(body, dict):
        inner = body.get("error") or body.get("Error") or body
        if isinstance(inner, dict):
            return str(inner.get("message") or inner.get("Message") or inner)
        return str(inner)
    return str(body or "")


def _headers(error: "ModelHTTPError") -> dict[str, str]:
    """The headers, with the wait that the provider asks for in whatever place."""
    told = {} if error.retry_after is None else {"retry-after": f"{error.retry_after}"}
    return {name: value for name, value in (error.headers or {}).items() if not name.startswith("retry-")} | told


def _cause(error: BaseException) -> str:
    """The innermost cause of a broken connection, in words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{error}" or type(error).__name__
