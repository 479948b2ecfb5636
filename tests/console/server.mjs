// The program under test, and a proxy that serves it below a path prefix.
import { spawn } from "node:child_process";
import { closeSync, createWriteStream, openSync, writeSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";

const SMALL_DISK_MB = 192;
export const KEY = "console-check-key-0123456789abcdef0123456789";

/** A port that is free now. */
export function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Starts the program and waits until it is ready. */
export async function start(binary, data, port, log, before = []) {
  const child = spawn(binary, [...before, "serve", "--data-dir", data, "--listen", `127.0.0.1:${port}`], {
    env: { ...process.env, LODESTONE_ADMIN_KEY: KEY },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const file = createWriteStream(log, { flags: "a" });
  child.stdout.pipe(file);
  child.stderr.pipe(file);
  for (let tries = 0; tries < 300; tries += 1) {
    if (child.exitCode !== null) throw new Error(`the program ended with ${child.exitCode}; see ${log}`);
    const answered = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    if (answered?.ok) return child;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the program did not become ready; see ${log}`);
}

/** Starts the program on a small disk that only it sees; null if none can be mounted (it needs root). */
export async function startOnSmallDisk(binary, directory, port, log) {
  const script = "mount -t tmpfs -o size=$1m none \"$2\" && shift 2 && exec \"$@\"";
  const small = [ "-m", "sh", "-c", script, "sh", String(SMALL_DISK_MB), directory, binary];
  return await start("unshare", path.join(directory, "data"), port, log, small).catch(() => null);
}

/** Fills the disk of {@link startOnSmallDisk} to the last byte. */
export function fillDisk(child, directory) {
  const file = openSync(path.join("/proc", String(child.pid), "root", directory, "filler"), "w");
  for (let bytes = 1 << 20; bytes >= 1024;) {
    try {
      writeSync(file, Buffer.alloc(bytes));
    } catch {
      bytes /= 2;
    }
  }
  closeSync(file);
}

/** Starts the program on a pseudo-terminal; resolves to it and the link to the console that it shows there. */
export function startOnTerminal(binary, data, port) {
  const { LODESTONE_ADMIN_KEY: _, LODESTONE_API_KEY: __, ...env } = process.env;
  const command = `exec '${binary}' serve --data-dir '${data}' --listen 127.0.0.1:${port}`;
  const child = spawn("script", ["-qfec", command, "/dev/null"], { env, stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let shown = "";
    child.once("exit", (code) => reject(new Error(`the program ended with ${code}: ${shown}`)));
    child.stdout.on("data", (piece) => {
      shown += piece;
      const [, link] = shown.match(/console +(http\S+)\s/) ?? [];
      if (link) resolve({ child, link });
    });
  });
}

/** Kills the program and waits until it has ended. */
export function kill(child) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", resolve);
    child.kill("SIGKILL");
  });
}

/** Sends a request to the server's API. */
export async function call(port, method, path, body) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/**
 * A proxy that serves the program below `prefix`, which it strips, as a web server would. Its host
 * name is not localhost: browsers disable some functions on other origins without TLS.
 */
export async function behindPrefix(port, prefix) {
  const own = await freePort();
  const server = http.createServer((request, response) => {
    if (!request.url.startsWith(`${prefix}/`)) return response.writeHead(404).end();
    const path = request.url.slice(prefix.length);
    const passed = http.request({ host: "127.0.0.1", port, path, method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
  await new Promise((resolve) => server.listen(own, "127.0.0.1", resolve));
  return { url: `http://console.test:${own}${prefix}/`, close: () => server.close() };
}
