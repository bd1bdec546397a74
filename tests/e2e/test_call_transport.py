"""How requests travel: connections that are kept and shared out, and the proxies that the environment names."""

import asyncio
import datetime
import gzip
import ipaddress
import ssl
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from codechat.models.calls.transport import AioTransport, proxy_of
from codechat.testing import Call, OpenAIServer
from support.mistakes import mistake

pytestmark = pytest.mark.long

ASK = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{scheme}_proxy", raising=False)
        monkeypatch.delenv(f"{scheme}_proxy".upper(), raising=False)


async def test_connections_are_kept_and_no_more_are_made_than_needed() -> None:
    crowd = asyncio.Barrier(3)

    async def three_at_once(call: Call) -> str:
        await crowd.wait()
        return "x"

    with OpenAIServer(three_at_once) as server:
        async with httpx2.AsyncClient(transport=AioTransport(server.base_url), timeout=30) as client:
            for _ in range(4):
                asked = [client.post(f"{server.base_url}/chat/completions", json=ASK) for _ in range(3)]
                assert {response.status_code for response in await asyncio.gather(*asked)} == {200}
            assert len(server.connections) == 3
        assert len(server.calls) == 12


async def test_no_header_that_describes_this_machine_is_sent() -> None:
    with OpenAIServer(lambda call: "x") as server:
        async with httpx2.AsyncClient(transport=AioTransport(server.base_url), timeout=30) as client:
            told = {"x-stainless-os": "Linux", "X-Stainless-Raw-Response": "true", "authorization": "key"}
            asked = await client.post(f"{server.base_url}/chat/completions", json=ASK, headers=told)
    assert asked.request.headers["x-stainless-raw-response"] == "true"  # by which the SDK reads the response
    sent = server.calls[0].headers
    assert sent["authorization"] == "key" and not [name for name in sent if "stainless" in name.lower()]


async def test_a_proxy_of_the_environment_carries_what_leaves_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server, httpx2.AsyncClient(transport=AioTransport("http://api.invalid/v1"), timeout=30) as client:
        assert (await client.get("http://api.invalid/v1/models")).status_code == 204
    assert seen == [b"GET http://api.invalid/v1/models HTTP/1.1"]


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "nonsense"])
def test_a_proxy_that_does_not_speak_http_is_told_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    with mistake("api.invalid", "http_proxy", "no_proxy") as told:
        AioTransport("http://api.invalid/v1")
    assert "secret" not in str(told.value)


async def test_a_proxy_that_is_down_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    async with httpx2.AsyncClient(transport=AioTransport("http://api.invalid/v1"), timeout=30) as client:
        with pytest.raises(httpx2.ConnectError, match="proxy") as told:
            await client.get("http://api.invalid/v1/models")
    assert "secret" not in str(told.value)


async def test_no_proxy_stands_before_this_machines_own_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    with OpenAIServer(lambda call: "x") as server:
        async with httpx2.AsyncClient(transport=AioTransport(server.base_url), timeout=30) as client:
            assert (await client.get(f"{server.base_url}/models")).status_code == 200


@pytest.mark.parametrize(
    ("environment", "address", "proxy"),
    [
        ({}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1"}, "https://api.example/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example:8443/v1", "http://p:1"),
        ({"https_proxy": "http://p:1"}, "http://api.example/v1", None),
        ({"all_proxy": "http://p:1"}, "http://api.example/v1", "http://p:1"),
        ({"https_proxy": "http://p:1", "no_proxy": "api.example"}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "example"}, "https://api.example:8443/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, "https://api.example/v1", None),
        ({"https_proxy": "http://p:1", "no_proxy": "other.example"}, "https://api.example/v1", "http://p:1"),
    ],
)
def test_proxies_are_named_as_everywhere(
    environment: dict[str, str], address: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(address) == proxy


async def _serve(head: bytes, body: bytes, tls: ssl.SSLContext | None = None) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)


def _address(server: asyncio.Server, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def test_a_compressed_answer_is_read() -> None:
    packed = gzip.compress(b'{"data": []}')
    head = b"content-encoding: gzip\r\ncontent-length: %d\r\n" % len(packed)
    async with await _serve(head, packed) as server:
        address = _address(server)
        async with httpx2.AsyncClient(transport=AioTransport(address), timeout=30) as client:
            assert (await client.get(f"{address}/models")).json() == {"data": []}


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"content-length: 100\r\n", b"cut"),
        (b"transfer-encoding: chunked\r\n", b"5\r\ncut"),
        (b"\x00broken: head\r\n", b""),
    ],
)
async def test_an_answer_that_breaks_off_is_no_missing_server(head: bytes, body: bytes) -> None:
    async with await _serve(head, body) as server:
        address = _address(server)
        async with httpx2.AsyncClient(transport=AioTransport(address), timeout=30) as client:
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get(f"{address}/models")


async def test_a_server_that_is_silent_runs_out_of_time() -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client hangs up
        writer.close()
        gone.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    address = _address(server)
    async with server, httpx2.AsyncClient(transport=AioTransport(address), timeout=0.05) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(f"{address}/models")
        await gone.wait()


async def test_certificates_are_checked_and_the_environment_may_name_further_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = _self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with await _serve(b"content-length: 2\r\n", b"ok", tls) as server:
        address = _address(server, "https")
        monkeypatch.setattr("codechat.models.calls.transport.LOCAL", ())  # as an address elsewhere
        async with httpx2.AsyncClient(transport=AioTransport(address), timeout=30) as client:
            with pytest.raises(httpx2.ConnectError, match="self-signed certificate"):
                await client.get(f"{address}/models")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with httpx2.AsyncClient(transport=AioTransport(address), timeout=30) as client:
            assert (await client.get(f"{address}/models")).text == "ok"


def _self_signed(folder: Path) -> Path:
    """Key and certificate of 127.0.0.1 in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(key.private_bytes(*plain) + built.public_bytes(serialization.Encoding.PEM))
    return file
