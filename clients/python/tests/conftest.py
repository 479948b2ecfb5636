"""Tests run against the server in LODESTONE_SERVER with the key in LODESTONE_API_KEY; see scripts/clients_check."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from lodestone_client import AsyncClient, AsyncCollection, Client, Collection


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture
async def async_client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient() as client:
        yield client


@pytest.fixture
def tenant(client: Client) -> Iterator[str]:
    tenant_id = f"t-{uuid.uuid4()}"
    client.tenant.create_tenant(tenant_id=tenant_id)
    yield tenant_id
    client.admin.delete(tenant_id=tenant_id, confirm=tenant_id)


@pytest.fixture
def collection(client: Client, tenant: str) -> Collection:
    return Collection(client, tenant)


@pytest.fixture
def async_collection(async_client: AsyncClient, tenant: str) -> AsyncCollection:
    return AsyncCollection(async_client, tenant)
