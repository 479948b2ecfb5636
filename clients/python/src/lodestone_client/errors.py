"""Exceptions: error answers, failed connections, and sources that could not be processed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from lodestone_client.models import FailedItem, Source


class LodestoneError(Exception):
    """Base class of all exceptions of this package."""


class ConnectionFailed(LodestoneError):
    """The server could not be reached or did not answer in time; the cause is chained."""


class StreamInterrupted(LodestoneError):
    """An event stream ended before its last event."""


class BatchFailed(LodestoneError):
    """Items of a batch were refused; `failed` lists them."""

    def __init__(self, failed: Sequence[FailedItem]) -> None:
        self.failed = failed
        reasons = "; ".join(f"{item['filename'] or item['index']}: {item['message']}" for item in failed[:3])
        super().__init__(f"{len(failed)} items refused: {reasons}")


class ProcessingFailed(LodestoneError):
    """Accepted sources could not be processed, or were deleted meanwhile (`missing`)."""

    def __init__(self, sources: Sequence[Source], missing: Sequence[str]) -> None:
        self.sources = sources
        self.missing = missing
        reasons = [f"{source['id']}: {source['error_code']} {source['error_message']}" for source in sources]
        reasons += [f"{file_id}: deleted" for file_id in missing]
        super().__init__(f"{len(reasons)} sources not processed: {'; '.join(reasons[:3])}")


class WaitTimeout(LodestoneError):
    """Sources were not processed in time; `pending` lists their ids."""

    def __init__(self, pending: Sequence[str]) -> None:
        self.pending = pending
        super().__init__(f"{len(pending)} sources are not processed yet, such as {pending[0]}")


class APIError(LodestoneError):
    """An error answer of the server.

    `error_code` is coarse and stable, `reason` precise; `field_errors` has `location`, `field` and
    `message` for each invalid parameter; `body` is the whole answer.
    """

    def __init__(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.error_code = str(body.get("error_code", ""))
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", ""))
        self.request_id = str(body.get("request_id") or headers.get("x-request-id", ""))
        detail = body.get("detail")
        self.field_errors: list[dict[str, str]] = detail.get("errors", []) if isinstance(detail, dict) else []
        super().__init__(f"{status} {self.reason or self.error_code}: {self.message} (request {self.request_id})")

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server asks to retry; `None` if it does not say."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdigit() else None


class InvalidRequestError(APIError):
    """400: the request is invalid."""


class AuthenticationError(APIError):
    """401: the key is missing or invalid."""


class PermissionDeniedError(APIError):
    """403: the key's role is not sufficient."""


class NotFoundError(APIError):
    """404: unknown, or outside the key's scope."""


class ConflictError(APIError):
    """409: it exists already, has another mode, or the idempotency key was used with another request."""


class PayloadTooLargeError(APIError):
    """413: a size limit is exceeded."""


class UnsupportedMediaTypeError(APIError):
    """415: another media type is expected."""


class RateLimitedError(APIError):
    """429: too many requests."""


class ServerError(APIError):
    """5xx: an error of the server."""


class LimitReachedError(APIError):
    """507: the tenant's storage limit is reached; `message` names the limit."""


class ServiceUnavailableError(ServerError):
    """503: the queue or disk is full, the server is starting, or the outcome is unknown."""


_OF_STATUS: dict[int, type[APIError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    429: RateLimitedError,
    503: ServiceUnavailableError,
    507: LimitReachedError,
}


def error_of(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> APIError:
    """The exception for an error answer."""
    kind = _OF_STATUS.get(status, ServerError if status >= 500 else APIError)
    return kind(status, body, headers)


def error_of_response(response: httpx.Response) -> APIError:
    """The exception for a response whose body has been read; it may come from a proxy."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"message": response.text[:500] or response.reason_phrase}
    return error_of(response.status_code, body, response.headers)
