"""Client for Lodestone, a self-hosted retrieval server: `Client`, `AsyncClient`, typed requests, results and errors."""

from lodestone_client import models
from lodestone_client._async.client import AsyncClient
from lodestone_client._async.collection import AsyncCollection
from lodestone_client._async.vectors import AsyncVectorCollection
from lodestone_client._protocol import Event, FileOutcome, Options
from lodestone_client._sync.client import Client
from lodestone_client._sync.collection import Collection
from lodestone_client._sync.vectors import VectorCollection
from lodestone_client.errors import (
    APIError,
    AuthenticationError,
    BatchFailed,
    ConflictError,
    ConnectionFailed,
    InvalidRequestError,
    LimitReachedError,
    LodestoneError,
    NotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    ProcessingFailed,
    RateLimitedError,
    ServerError,
    ServiceUnavailableError,
    StreamInterrupted,
    UnsupportedMediaTypeError,
    WaitTimeout,
)

__all__ = [
    "APIError",
    "AsyncClient",
    "AsyncCollection",
    "AsyncVectorCollection",
    "AuthenticationError",
    "BatchFailed",
    "Client",
    "Collection",
    "ConflictError",
    "ConnectionFailed",
    "Event",
    "FileOutcome",
    "InvalidRequestError",
    "LimitReachedError",
    "LodestoneError",
    "NotFoundError",
    "Options",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "ProcessingFailed",
    "RateLimitedError",
    "ServerError",
    "ServiceUnavailableError",
    "StreamInterrupted",
    "UnsupportedMediaTypeError",
    "VectorCollection",
    "WaitTimeout",
    "models",
]
