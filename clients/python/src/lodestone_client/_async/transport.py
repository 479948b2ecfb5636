"""Sends requests over httpx, and repeats them if that is safe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from lodestone_client._protocol import (
    PAGE_ENTRIES,
    Event,
    EventReader,
    Operation,
    Options,
    Request,
    Settings,
    read_answer,
)
from lodestone_client.errors import APIError, ConnectionFailed, StreamInterrupted, error_of, error_of_response


class AsyncTransport:
    """The connection pool to one server."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient | None) -> None:
        self.settings = settings
        self.owns_http = http is None
        self.http = httpx.AsyncClient() if http is None else http

    async def call(self, operation: Operation, parameters: Mapping[str, object], options: Options | None) -> Any:
        """Calls an operation and returns its result."""
        response = await self.send(operation, parameters, options)
        return read_answer(operation, response)

    async def send(
        self, operation: Operation, parameters: Mapping[str, object], options: Options | None, is_stream: bool = False
    ) -> httpx.Response:
        """Sends a request and returns the successful response; its body is read unless it is a stream."""
        options = options or Options()
        request = Request(self.settings, operation, parameters, options)
        attempt = 0
        while True:
            error: APIError | ConnectionFailed
            try:
                response = await self.http.send(self.http.build_request(**request.arguments), stream=True)
                if not (is_stream and response.is_success):
                    try:
                        await response.aread()
                    finally:
                        await response.aclose()
            except httpx.RequestError as cause:
                error = ConnectionFailed(f"{operation.method} {operation.path}: {cause or type(cause).__name__}")
                error.__cause__ = cause
                delay = request.delay(attempt, None)
            else:
                if response.is_success:
                    if options.on_response:
                        options.on_response(response)
                    return response
                error = error_of_response(response)
                delay = request.delay(attempt, error)
            if delay is None:
                raise error
            await self.pause(delay)
            attempt += 1

    async def pause(self, seconds: float) -> None:
        """Waits before another attempt."""
        await asyncio.sleep(seconds)

    async def stream(
        self, operation: Operation, parameters: Mapping[str, object], options: Options | None
    ) -> AsyncIterator[Event]:
        """Yields the events of a streamed answer. Leaving the loop closes the connection and so cancels the work."""
        response = await self.send(operation, {**parameters, "stream": True}, options, is_stream=True)
        reader = EventReader()
        try:
            async for text in response.aiter_text():
                for event in reader.feed(text):
                    if event.event == "error":
                        status = 503 if event.data.get("error_code") == "SERVICE_UNAVAILABLE" else 500
                        raise error_of(status, event.data, response.headers)
                    yield event
                    if event.event == "done":
                        return
        except httpx.TransportError as cause:
            raise StreamInterrupted(f"{operation.path}: {cause or type(cause).__name__}") from cause
        finally:
            await response.aclose()
        raise StreamInterrupted(f"{operation.path}: the stream ended before its last event")

    async def pages(
        self, operation: Operation, parameters: Mapping[str, object], options: Options | None, member: str
    ) -> AsyncIterator[Any]:
        """Yields the entries of all pages."""
        cursor: object = None
        while True:
            page = {"limit": PAGE_ENTRIES, **parameters}
            answer = await self.call(operation, page if cursor is None else {**page, "cursor": cursor}, options)
            for entry in answer[member]:
                yield entry
            cursor = answer["next_cursor"]
            if cursor is None:
                return
