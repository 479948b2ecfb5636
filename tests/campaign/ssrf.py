"""The row on addresses that must not be reached, in a network namespace where every address leads back here.

All of IPv4 and IPv6 is routed to the loopback device of the namespace, and a server that records the address of each
connection listens on every address: a request that should have been refused is seen where it arrives. Names are
resolved by the row itself. Public addresses must be reached: otherwise the row would prove nothing.
"""
import contextlib
import ipaddress
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from types import SimpleNamespace

from server import Broken, Server, wait_for_jobs

PUBLIC, PUBLIC_6 = "93.184.216.34", "2606:2800:220:1::1"
PORTS = (80, 443, 22, 3128, 6379, 8080)
SPECIAL = """127.0.0.1 127.1.2.3 10.0.0.1 10.255.255.254 172.16.0.1 172.31.255.254 192.168.1.1 169.254.169.254
    169.254.0.1 100.64.0.1 100.100.100.200 0.0.0.0 0.1.2.3 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.1
    198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16""".split()
SPECIAL_6 = """::1 :: fe80::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 fec0::1 100::1 3fff::1
    64:ff9b:1::a00:1 2001:0:4136:e378:8000:63bf:f5ff:fffe""".split()


def is_possible():
    """Whether network namespaces are available."""
    probe = ["unshare", "-n", "-m", "ip", "link", "set", "lo", "up"]
    tools = os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip")
    return bool(tools) and subprocess.run(probe, capture_output=True, check=False).returncode == 0


def spellings(address):
    """Spellings that one program or another accepts for an IPv4 address."""
    a, b, c, d = (int(part) for part in address.split("."))
    number, high, low = a << 24 | b << 16 | c << 8 | d, a << 8 | b, c << 8 | d
    wide = "".join(chr(ord(letter) + 0xFEE0) if letter.isdigit() else letter for letter in address)
    numbers = [f"{number}", f"0x{number:08x}", f"0{number:o}", f"{a}.{b << 16 | c << 8 | d}", f"{a}.{b}.{low}"]
    parts = [f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"0x{a:x}.0x{b:x}.{c}.{d}", f"%{ord(address[0]):02x}{address[1:]}"]
    letters = [address, f"{address}.", address.replace(".", "。"), wide, f"{address}:80"]
    inside = [f"[::ffff:{address}]", f"[::ffff:{high:x}:{low:x}]", f"[::{address}]", f"[64:ff9b::{high:x}:{low:x}]"]
    return [*numbers, *parts, *letters, *inside, f"[2002:{high:x}:{low:x}::1]", f"{PUBLIC}@{address}", f"user:pass@{address}"]


NAMES = {
    "public.test": [PUBLIC],
    "public6.test": [PUBLIC_6],
    "private.test": ["10.0.0.1"],
    "mixed.test": [PUBLIC, "10.0.0.1"],
    "loop.test": ["127.0.0.1"],
    "meta.test": ["169.254.169.254"],
    "zero.test": ["0.0.0.0"],
    "carrier.test": ["100.64.0.1"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:10.0.0.1"],
    "local.test": ["fd00:ec2::254"],
    "sixmixed.test": [PUBLIC_6, "fe80::1"],
}
NAMES_REFUSED = [name for name in NAMES if not name.startswith("public")]
NAMES_REFUSED += ["localhost", "LOCALHOST.", "a.localhost", "ip6-localhost"]
SCHEMES = ("file", "gopher", "ftp", "dict", "jar", "data", "unix")


def cases(random):
    """`(url, must be reached)`; `None` for a name whose address changes: any outcome, but never a private address."""
    hosts = [spelling for address in SPECIAL for spelling in spellings(address)]
    hosts += [f"[{address}]" for address in SPECIAL_6] + NAMES_REFUSED
    refused = [f"http://{host}/page" for host in hosts] + [f"https://{host}/page" for host in random.sample(hosts, 30)]
    refused += [f"http://{PUBLIC}:{port}/page" for port in (22, 3128, 6379, 8080, 0, 65536)]
    refused += [f"{scheme}:{rest}" for scheme in SCHEMES for rest in ("///etc/passwd", f"//{PUBLIC}/page")]
    targets = random.sample(refused, 120)
    to = lambda target, host=PUBLIC, code=302: f"http://{host}/{code}/{target.encode().hex()}"
    refused += [to(target, code=random.choice([301, 302, 303, 307, 308])) for target in targets]
    refused += [to(to(target, "public.test"), code=307) for target in targets[:20]]
    hosts = [PUBLIC, f"[{PUBLIC_6}]", "public.test", "public6.test", "8.8.8.8"]
    reached = [f"http://{host}/page" for host in hosts]
    reached += [to(url) for url in reached]
    changing = [f"http://rebind-{number}.test/page" for number in range(12)]
    return [(url, False) for url in refused] + [(url, True) for url in reached] + [(url, None) for url in changing]


def addresses(trial):
    """Runs all cases, in a process with its own network."""
    order = {"folder": str(trial.folder), "binary": str(trial.binary), "model": str(trial.model)}
    order["key"] = trial.key
    order["seed"] = trial.random.random()
    command = ["unshare", "-n", "-m", sys.executable, "-B", __file__, json.dumps(order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{done.stdout}{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    trial.add(**result["counts"])
    if result["failures"]:
        raise Broken(f"{len(result['failures'])} failures: {result['failures'][:5]}")


class Network:
    """A network in which every address of the world is local."""

    def __init__(self, folder):
        for command in ("ip link set lo up", "ip route add local 0.0.0.0/0 dev lo", "ip -6 route add local ::/0 dev lo"):
            subprocess.run(command.split(), check=True)
        resolver = folder / "resolv.conf"
        resolver.write_text("nameserver 127.0.0.1\noptions attempts:1 timeout:2\n")
        subprocess.run(["mount", "--bind", resolver, "/etc/resolv.conf"], check=True)
        self.inside, self.public, self.asked = [], 0, {}
        threading.Thread(target=self.resolve, daemon=True).start()
        for port in PORTS:
            for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                listener = socket.socket(family)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind((any_address, port))
                listener.listen(512)
                threading.Thread(target=self.listen, args=(listener, port), daemon=True).start()

    def listen(self, listener, port):
        """Records the address that each connection was made to."""
        while True:
            connection, _ = listener.accept()
            address = connection.getsockname()[0].split("%")[0]
            if address in (PUBLIC, PUBLIC_6, "8.8.8.8") and port in (80, 443):
                self.public += 1
            else:
                self.inside.append(f"{address} port {port}")
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        """Answers with a page, or with a redirect to the URL encoded in the path."""
        with connection, contextlib.suppress(OSError, ValueError, IndexError):
            connection.settimeout(5)
            path = connection.recv(65536).decode().split(" ")[1].split("/")
            body = b"<html><body><p>A page of the whole world.</p></body></html>"
            head = "HTTP/1.1 200 OK\r\ncontent-type: text/html"
            if len(path) == 3 and path[1].isdigit():
                head, body = f"HTTP/1.1 {path[1]} Go\r\nlocation: {bytes.fromhex(path[2]).decode()}", b""
            elif path[1] == "robots.txt":
                head = "HTTP/1.1 404 No"
            connection.sendall(f"{head}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)

    def resolve(self):
        """Answers A and AAAA queries; a `rebind` name is public at the first query and private from then on."""
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 53))
        while True:
            question, client = server.recvfrom(2048)
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode())
                at += 1 + question[at]
            name, (kind,) = ".".join(labels).lower(), struct.unpack(">H", question[at + 1 : at + 3])
            found = NAMES.get(name, [])
            if name.startswith("rebind"):
                self.asked[name, kind] = self.asked.get((name, kind), 0) + 1
                found = [PUBLIC if self.asked[name, kind] == 1 else "10.0.0.1"]
            wanted = [ipaddress.ip_address(one) for one in found]
            wanted = [one.packed for one in wanted if {1: 4, 28: 6}.get(kind) == one.version]
            head = question[:2] + struct.pack(">HHHHH", 0x8180 if found else 0x8183, 1, len(wanted), 0, 0)
            answers = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(one)) + one for one in wanted)
            server.sendto(head + question[12 : at + 5] + answers, client)


def main(order):
    """Requests every case and prints one line of JSON."""
    folder, random, failures = Path(order["folder"]), Random(order["seed"]), []
    network, numbers = Network(folder), iter(range(99))
    given = {name: order[name] for name in ("binary", "model", "key")}
    trial = SimpleNamespace(folder=folder, servers=[], embedder={}, **given)
    trial.next_number = lambda: next(numbers)
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    proxies = {name: "http://127.0.0.1:3128" for name in names}
    server = Server(trial, folder / "data", proxies)
    network.inside.clear()
    client, asked = server.client(), cases(random)
    random.shuffle(asked)
    expected = {}
    for number, (url, is_reached) in enumerate(asked):
        name = f"page-{number}"
        status, answer = client.ask("POST", "/upload/scrape_webpage", tenant_id="web", file_id=name, web_url=url)
        expected[f"page-{number}"] = url, is_reached
        if status != 200 and (is_reached or status >= 500):
            failures.append(f"{url}: {status} {answer}")
        if number % 100 == 99:
            wait_for_jobs(client)
    wait_for_jobs(client)
    cursor, statuses = {}, {}
    while cursor is not None:
        answer = client.expect("GET", "/list/sources", tenant_id="web", **cursor)
        statuses |= {source["id"]: (source["status"], source["error_message"]) for source in answer["sources"]}
        cursor = {"cursor": answer["next_cursor"]} if answer["next_cursor"] else None
    for name, (url, is_reached) in expected.items():
        status, message = statuses.get(name, ("refused", ""))
        if is_reached is not None and is_reached != (status == "success"):
            failures.append(f"{url} ended as {status}: {message}")
    hooks = [url for url, is_reached in asked if is_reached is False][:40]
    for url in hooks:
        status, answer = client.ask("POST", "/admin/webhooks", {"url": url, "events": ["job.succeeded"]})
        if status == 200:
            client.ask("POST", f"/admin/webhooks/{answer['webhook_id']}/test")
    inside = sorted(set(network.inside))
    failures += [f"{address} was reached" for address in inside]
    server.kill()
    counts = {"cases": len(asked), "webhooks": len(hooks), "connections": network.public, "inside": len(network.inside)}
    print(json.dumps({"counts": counts, "failures": failures}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
