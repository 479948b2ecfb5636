// Ids of files and web pages, as `lodestone ingest` makes them (src/cli/ingest/ids.rs).

const ID_CHARS_MAX = 256;
/** Marks a shortened id: a `%` that begins no escape. */
const SHORTENED = "%~";
/** Hexadecimal digits of the hash in a shortened id. */
const HASH_CHARS = 32;
/** Characters that a shortened id keeps at either end. */
const END_CHARS = (ID_CHARS_MAX - SHORTENED.length - HASH_CHARS) / 2;

/** @param {string} text */
const escaped = (text) => Array.from(new TextEncoder().encode(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");

/**
 * The id of a file, from its path.
 * @param {string} path
 */
export function idOf(path) {
  const id = idOfParts(path.split("/").filter((part) => part !== ""));
  return /^\.{0,2}$/.test(id) ? "file" : id;
}

/**
 * The id of a web page, from its address.
 * @param {string} url
 */
export function idOfPage(url) {
  return idOfParts(url.split("/"));
}

/** @param {string[]} parts */
function idOfParts(parts) {
  /** @param {RegExp} refused */
  const joined = (refused) => parts.map((part) => part.replace(refused, (found) => escaped(found))).join(":")
    .replace(/^\p{White_Space}|\p{White_Space}$/gu, (found) => escaped(found));
  const plain = joined(/[\p{Cc}\u2028\u2029%:\\]/gu);
  // The server compares ids in NFC, which would map different paths to one id.
  if (plain === plain.normalize() && [...plain].length <= ID_CHARS_MAX) return plain;
  const ascii = joined(/[\p{Cc}%:\\]|[^\0-\x7f]/gu);
  if (ascii.length <= ID_CHARS_MAX) return ascii;
  return ascii.slice(0, END_CHARS) + SHORTENED + sha256(ascii).slice(0, HASH_CHARS) + ascii.slice(-END_CHARS);
}

/** Fractional parts of the square roots of the first 8 primes (FIPS 180-4, 5.3.3). */
const START = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];
/** Fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
const ROUNDS = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/** @param {number} word @param {number} by */
const turned = (word, by) => (word >>> by) | (word << (32 - by));

/**
 * The SHA-256 hash of an ASCII text in hexadecimal digits. That of browsers exists only on pages loaded over https.
 * @param {string} text
 */
function sha256(text) {
  // The text, a bit, zeros and the length in bits, in blocks of 64 bytes.
  const bytes = new Uint8Array(Math.ceil((text.length + 9) / 64) * 64);
  bytes.set(new TextEncoder().encode(text));
  bytes[text.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 4, text.length * 8);
  const state = Uint32Array.from(START);
  const words = new Uint32Array(64);
  for (let block = 0; block < bytes.length; block += 64) {
    for (let at = 0; at < 64; at += 1) {
      if (at < 16) {
        words[at] = view.getUint32(block + 4 * at);
        continue;
      }
      const [early, late] = [words[at - 15], words[at - 2]];
      words[at] = words[at - 16] + (turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)) + words[at - 7]
        + (turned(late, 17) ^ turned(late, 19) ^ (late >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let at = 0; at < 64; at += 1) {
      const one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[at] + words[at];
      const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => { state[at] += word; });
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}
