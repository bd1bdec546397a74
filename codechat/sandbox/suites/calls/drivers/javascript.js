// Calls a program's function on every tuple of arguments and writes the results, in the form that `__init__.py` tells.
// What it uses is bound beforehand: a program may extend or replace what it would look up, and then fails by itself.
"use strict";

const fs = require("fs");
const { Writable } = require("stream");
const vm = require("vm");
const { createRequire } = require("module");
const { pathToFileURL } = require("url");

const [, , ENTRY, TIMED] = process.argv;
const DEEPEST = 190;
const LONGEST = 256 * 1024;
const PRINTED = 2048;
const HEAD = 7;
const BLANK = 0x20;
const NAME = "program.js";
const [CHANNEL, ERRORS] = [1, 2];
const { writeSync } = fs;
const { cpuUsage, reallyExit } = process;
const { isArray } = Array;
const { getPrototypeOf, keys: keysOf } = Object;
const { isView } = ArrayBuffer;
const [OBJECT, MAP, SET] = [Object.prototype, Map.prototype, Set.prototype];
const { isInteger, isSafeInteger } = Number;
const isWellFormed = Function.prototype.call.bind(String.prototype.isWellFormed);
const codeAt = Function.prototype.call.bind(String.prototype.codePointAt);
const pairsOf = Function.prototype.call.bind(MAP.forEach);
const itemsOf = Function.prototype.call.bind(SET.forEach);
let printed = 0;

/** Reads marshal's plain data. */
class Reader {
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  size() {
    this.at += 4;
    return this.data.readInt32LE(this.at - 4);
  }

  items() {
    return Array.from({ length: this.size() }, () => this.value());
  }

  value() {
    const kind = String.fromCharCode(this.data[this.at++]);
    switch (kind) {
      case "N": return null;
      case "T": return true;
      case "F": return false;
      case "i": return this.size();
      case "l": return this.long();
      case "g": this.at += 8; return this.data.readDoubleLE(this.at - 8);
      case "u": return this.text();
      case "[": case "(": return this.items();
      case "<": case ">": return new Set(this.items());
      case "{": return this.dictionary();
      default: throw new Error(`a value of the kind ${kind}`);
    }
  }

  long() {
    const count = this.size();
    let number = 0;
    for (let place = 0; place < Math.abs(count); place++, this.at += 2) {
      number += this.data.readUInt16LE(this.at) * 2 ** (15 * place);
    }
    return count < 0 ? -number : number;
  }

  /** A text, whose bytes may stand for halves of code points. */
  text() {
    const size = this.size();
    const bytes = this.data.subarray(this.at, this.at + size);
    this.at += size;
    const text = bytes.toString("utf8");
    if (!text.includes("\ufffd")) return text;
    return bytes.toString("latin1").replace(/\xed[\xa0-\xbf][\x80-\xbf]|[\xc2-\xf4][\x80-\xbf]+/g, (each) => {
      const points = Buffer.from(each, "latin1");
      if (points.length !== 3 || points[0] !== 0xed || points[1] < 0xa0) return points.toString("utf8");
      return String.fromCharCode(((points[0] & 15) << 12) | ((points[1] & 63) << 6) | (points[2] & 63));
    });
  }

  /** An object if all keys are texts, as programs expect it, else a map. */
  dictionary() {
    const pairs = [];
    while (this.data[this.at] !== 0x30) pairs.push([this.value(), this.value()]);
    this.at++;
    if (pairs.some(([key]) => typeof key !== "string")) return new Map(pairs);
    const made = {};
    for (const [key, value] of pairs) {
      Object.defineProperty(made, key, { value, writable: true, enumerable: true, configurable: true });
    }
    return made;
  }
}

class TooLong extends Error {}

/** Writes marshal's plain data. */
class Writer {
  constructor() {
    this.data = Buffer.alloc(HEAD + LONGEST + 1024); // a frame: one write for it, and nothing is copied
    this.at = HEAD;
  }

  room(bytes) {
    if (this.at + bytes > HEAD + LONGEST) throw new TooLong();
  }

  kind(letter) {
    this.room(16);
    this.data[this.at++] = letter.charCodeAt(0);
  }

  size(number) {
    this.room(4);
    this.at = this.data.writeInt32LE(number, this.at);
  }

  value(value, depth = 0) {
    switch (typeof value) {
      case "undefined": return this.kind(depth ? "N" : "."); // within a value, as JSON has it
      case "boolean": return this.kind(value ? "T" : "F");
      case "number": return isSafeInteger(value) && !Object.is(value, -0) ? this.whole(value) : this.double(value);
      case "bigint": return this.long(value);
      case "string": return this.text(value);
      case "object": return value === null ? this.kind("N") : this.container(value, depth + 1);
      default: return this.opaque(`a ${typeof value}`);
    }
  }

  whole(value) {
    if (value !== (value | 0)) return this.long(value);
    this.kind("i");
    this.size(value);
  }

  double(value) {
    this.kind("g");
    this.at = this.data.writeDoubleLE(value, this.at);
  }

  long(value) {
    const digits = [];
    if (typeof value === "number") {
      for (let left = Math.abs(value); left > 0; left = Math.floor(left / 32768)) digits.push(left % 32768);
    } else {
      this.room(value.toString(16).length / 2);
      for (let left = value < 0n ? -value : value; left > 0n; left >>= 15n) digits.push(Number(left & 32767n));
    }
    this.kind("l");
    this.size(value < 0 ? -digits.length : digits.length);
    this.room(2 * digits.length);
    for (const digit of digits) this.at = this.data.writeUInt16LE(digit, this.at);
  }

  text(value) {
    this.kind("u");
    this.room(value.length);
    const start = this.at;
    this.size(0);
    if (isWellFormed(value)) {
      this.room(Buffer.byteLength(value));
      this.at += this.data.write(value, this.at, "utf8");
    } else {
      for (let place = 0; place < value.length; place++) {
        const point = codeAt(value, place);
        place += point > 0xffff;
        this.room(4);
        if (point < 0xd800 || point > 0xdfff) this.at += this.data.write(String.fromCodePoint(point), this.at, "utf8");
        else for (const byte of [0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63)]) {
          this.data[this.at++] = byte;
        }
      }
    }
    this.data.writeInt32LE(this.at - start - 4, start);
  }

  container(value, depth) {
    if (depth > DEEPEST) return this.opaque("a value nested too deeply");
    const origin = getPrototypeOf(value);
    if (isArray(value) || (isView(value) && "length" in value)) return this.sequence("[", value, depth);
    if (origin === SET) {
      const items = [];
      itemsOf(value, (item) => items.push(item));
      return this.sequence("<", items, depth);
    }
    const pairs = [];
    if (origin === MAP) pairsOf(value, (item, key) => pairs.push(key, item));
    else if (origin === OBJECT || origin === null) for (const key of keysOf(value)) pairs.push(key, value[key]);
    else return this.opaque(`an object of ${value.constructor?.name}`);
    this.kind("{");
    for (const part of pairs) this.value(part, depth);
    this.kind("0");
  }

  sequence(kind, items, depth) {
    this.kind(kind);
    this.room(items.length);
    this.size(items.length);
    for (let place = 0; place < items.length; place++) this.value(items[place], depth);
  }

  opaque(name) {
    this.kind("(");
    this.size(3);
    this.kind(".");
    this.text("opaque");
    this.text(name.slice(0, 200));
  }

  /** Writes a value; of one that is too long only the name. */
  bounded(value) {
    this.at = HEAD;
    try {
      this.value(value);
    } catch (error) {
      if (!(error instanceof TooLong)) throw error;
      this.at = HEAD;
      this.opaque("a value too long to be compared");
    }
  }

  /** Sends what was written last. */
  send(kind) {
    this.data[0] = kind.charCodeAt(0);
    this.data.writeUInt32LE(this.at - HEAD, 1);
    this.data.writeUInt16LE(printed, 5);
    writeAll(CHANNEL, this.data, this.at);
  }
}

const writer = new Writer();

function writeAll(handle, data, size = data.length) {
  for (let at = 0; at < size; ) at += writeSync(handle, data, at, size - at);
}

function send(kind, payload = "") {
  writer.at = HEAD + writer.data.write(payload, HEAD);
  writer.send(kind);
}

/** Sends the CPU seconds since a time, while a value is ready to be sent. */
function sendTime(began) {
  const took = cpuUsage(began);
  const frame = Buffer.alloc(HEAD + 8);
  frame[0] = "T".charCodeAt(0);
  frame.writeUInt32LE(8, 1);
  frame.writeUInt16LE(printed, 5);
  frame.writeDoubleLE((took.user + took.system) / 1e6, HEAD);
  writeAll(CHANNEL, frame);
}

/** A stream that keeps the head of what is printed, and drops the rest. */
function printing() {
  return new Writable({
    decodeStrings: true,
    write(chunk, encoding, done) {
      const kept = chunk.subarray(0, PRINTED - printed);
      printed += kept.length;
      writeAll(ERRORS, kept);
      done();
    },
  });
}

/** What an exception says: its type, text, and lines, for marshal a tuple of plain data. */
function sendError(error) {
  const said = ["Error", "(no text)", []];
  try {
    said[0] = String(error?.constructor?.name ?? typeof error).slice(0, 100);
    said[1] = String(error instanceof Error ? error.message : error).slice(0, 1000);
    const lines = String(error?.stack ?? "").matchAll(/at (?:(\S+) \()?[^\s()]*program\.m?js:(\d+)/g);
    said[2] = Array.from(lines, ([, name, line]) => `line ${line}${name ? `, in ${name}` : ""}`).slice(0, 12).reverse();
  } catch {
    // its own getters may throw anything
  }
  writer.at = HEAD;
  writer.kind("(");
  writer.size(4);
  for (const part of [...said, "error"]) writer.value(part);
  writer.send("X");
}

/** The function of the program; throws what the program throws. */
async function load(source) {
  const place = `${process.cwd()}/${NAME}`;
  const module = { exports: {}, id: ".", filename: place, loaded: false, children: [], paths: [] };
  const own = createRequire(place);
  own.main = module;
  const names = ["exports", "require", "module", "__filename", "__dirname"];
  const asked = `typeof ${ENTRY} === "undefined" ? module.exports?.${ENTRY} ?? module.exports : ${ENTRY}`;
  let run;
  try {
    run = vm.compileFunction(`${source}\n;return ${asked};`, names, { filename: place });
  } catch (error) {
    if (!/^\s*(?:import|export)\b/m.test(source)) throw new Unparsed(error);
    return loadModule(source);
  }
  const found = run.call(module.exports, module.exports, own, module, place, process.cwd());
  return found ?? module.exports?.[ENTRY];
}

class Unparsed extends Error {
  constructor(error) {
    super(String(error.message));
    this.line = /program\.m?js:(\d+)/.exec(error.stack)?.[1] ?? "?";
  }
}

async function loadModule(source) {
  const name = `${process.cwd()}/program.mjs`;
  fs.writeFileSync(name, `${source}\n;export { ${ENTRY} as codechat_entry };`);
  try {
    return (await import(pathToFileURL(name).href)).codechat_entry;
  } catch (error) {
    throw error instanceof SyntaxError ? new Unparsed(error) : error;
  }
}

async function main() {
  const source = fs.readFileSync(NAME, "utf8");
  const data = fs.readFileSync("arguments");
  const calls = data[0] === BLANK ? JSON.parse(data) : new Reader(data).value();
  for (const name of ["arguments", "runner.js"]) fs.unlinkSync(name);
  writeAll(ERRORS, Buffer.from("\f")); // what Node itself has to say is said
  for (const name of ["stdout", "stderr"]) Object.defineProperty(process, name, { value: printing() });
  process.argv.length = 1;
  let entry;
  try {
    entry = await load(source);
  } catch (error) {
    if (error instanceof Unparsed) return send("S", `line ${error.line}: ${error.message}`.slice(0, 1000));
    return sendError(error);
  }
  if (typeof entry !== "function") return send("M");
  send("L");
  for (const given of calls) {
    try {
      const began = TIMED ? cpuUsage() : null;
      writer.bounded(entry(...given));
      if (TIMED) sendTime(began);
      writer.send("V");
    } catch (error) {
      return sendError(error);
    }
  }
  send("Z");
}

main().finally(() => reallyExit(0));
