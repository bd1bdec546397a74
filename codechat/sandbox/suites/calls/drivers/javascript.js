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
const { getPrototypeOf, getOwnPropertyDescriptor, is, keys: keysOf } = Object;
const { isView } = ArrayBuffer;
const { apply } = Reflect;
const { floor } = Math;
const toNumber = Number;
const { byteLength } = Buffer;
const { fromCodePoint } = String;
const [OBJECT, MAP, SET] = [Object.prototype, Map.prototype, Set.prototype];
const { isSafeInteger } = Number;
const free = (method) => Function.prototype.call.bind(method); // its first argument is `this`
const [isWellFormed, codeAt, letterAt] = ["isWellFormed", "codePointAt", "charCodeAt"].map((name) => free(String.prototype[name]));
const [int32, uint32, uint16, double, utf8] = ["writeInt32LE", "writeUInt32LE", "writeUInt16LE", "writeDoubleLE", "utf8Write"].map(
  (name) => free(Buffer.prototype[name]),
);
const digitsOf = free(BigInt.prototype.toString);
const [pairsOf, itemsOf] = [free(MAP.forEach), free(SET.forEach)];
const sizeOf = free(getOwnPropertyDescriptor(SET, "size").get);
const then = free(Promise.prototype.then);
const soon = queueMicrotask;
let printed = 0;
let calls;

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
    this.data[this.at++] = letterAt(letter, 0);
  }

  size(number) {
    this.room(4);
    this.at = int32(this.data, number, this.at);
  }

  value(value, depth = 0) {
    switch (typeof value) {
      case "undefined": return this.kind(depth ? "N" : "."); // within a value, as JSON has it
      case "boolean": return this.kind(value ? "T" : "F");
      case "number": return isSafeInteger(value) && !is(value, -0) ? this.whole(value) : this.double(value);
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
    this.at = double(this.data, value, this.at);
  }

  long(value) {
    const big = typeof value === "bigint";
    const [none, base] = big ? [0n, 32768n] : [0, 32768];
    if (big) this.room(digitsOf(value, 16).length / 2);
    this.kind("l");
    const start = this.at;
    this.size(0);
    let count = 0;
    for (let left = value < none ? -value : value; left > none; count++) {
      this.room(2);
      this.at = uint16(this.data, toNumber(left % base), this.at);
      left = big ? left / base : floor(left / base);
    }
    int32(this.data, value < none ? -count : count, start);
  }

  text(value) {
    this.kind("u");
    this.room(value.length);
    const start = this.at;
    this.size(0);
    if (isWellFormed(value)) {
      this.utf8(value);
    } else {
      for (let place = 0; place < value.length; place++) {
        const point = codeAt(value, place);
        place += point > 0xffff;
        if (point < 0xd800 || point > 0xdfff) this.utf8(fromCodePoint(point));
        else {
          this.room(4);
          this.data[this.at++] = 0xe0 | (point >> 12);
          this.data[this.at++] = 0x80 | ((point >> 6) & 63);
          this.data[this.at++] = 0x80 | (point & 63);
        }
      }
    }
    int32(this.data, this.at - start - 4, start);
  }

  utf8(text) {
    const bytes = byteLength(text);
    this.room(bytes);
    this.at += utf8(this.data, text, this.at, bytes);
  }

  container(value, depth) {
    if (depth > DEEPEST) return this.opaque("a value nested too deeply");
    const origin = getPrototypeOf(value);
    if (isArray(value) || (isView(value) && "length" in value)) return this.sequence(value, depth);
    if (origin === SET) {
      const size = sizeOf(value);
      this.kind("<");
      this.room(size);
      this.size(size);
      return itemsOf(value, (item) => this.value(item, depth));
    }
    const either = (key, item) => {
      this.value(key, depth);
      this.value(item, depth);
    };
    const pairs = origin === MAP || origin === OBJECT || origin === null;
    if (!pairs) return this.opaque(`an object of ${value.constructor?.name}`);
    this.kind("{");
    if (origin === MAP) {
      pairsOf(value, (item, key) => either(key, item));
    } else {
      const keys = keysOf(value);
      for (let place = 0; place < keys.length; place++) either(keys[place], value[keys[place]]);
    }
    this.kind("0");
  }

  sequence(items, depth) {
    const { length } = items;
    this.kind("[");
    this.room(length);
    this.size(length);
    for (let place = 0; place < length; place++) this.value(items[place], depth);
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
    sendFrame(kind, this.data, this.at);
  }
}

function sendFrame(kind, data, size) {
  data[0] = letterAt(kind, 0);
  uint32(data, size - HEAD, 1);
  uint16(data, printed, 5);
  writeAll(CHANNEL, data, size);
}

const writer = new Writer();
const timeFrame = Buffer.alloc(HEAD + 8);

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
  double(timeFrame, (took.user + took.system) / 1e6, HEAD);
  sendFrame("T", timeFrame, HEAD + 8);
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

/**
 * Loads the program and goes on with its function. No promise is ever resolved with a value of the program: a `then`
 * that it defines, on a function or on any prototype, would stand for the function. Throws what the program throws.
 */
function load(source) {
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
  const entry = found ?? module.exports?.[ENTRY];
  soon(() => ending(() => call(entry))); // after what the program left for the end of its load
}

class Unparsed extends Error {
  constructor(error) {
    super(String(error.message));
    this.line = /program\.m?js:(\d+)/.exec(error.stack)?.[1] ?? "?";
  }
}

/** By a module of ours in between, whose promise has only the names that we export: no `then` of the program's. */
function loadModule(source) {
  const [name, between] = ["program.mjs", "between.mjs"].map((each) => `${process.cwd()}/${each}`);
  fs.writeFileSync(name, `${source}\n;export { ${ENTRY} as codechat_entry };`);
  fs.writeFileSync(between, 'export { codechat_entry } from "./program.mjs";');
  then(
    import(pathToFileURL(between).href),
    (module) => ending(() => call(module.codechat_entry)),
    (error) => ending(() => failed(error instanceof SyntaxError ? new Unparsed(error) : error)),
  );
}

function failed(error) {
  if (error instanceof Unparsed) send("S", `line ${error.line}: ${error.message}`.slice(0, 1000));
  else sendError(error);
}

function main() {
  const source = fs.readFileSync(NAME, "utf8");
  const data = fs.readFileSync("arguments");
  calls = data[0] === BLANK ? JSON.parse(data) : new Reader(data).value();
  for (const name of ["arguments", "runner.js"]) fs.unlinkSync(name);
  writeAll(ERRORS, Buffer.from("\f")); // what Node itself has to say is said
  for (const name of ["stdout", "stderr"]) Object.defineProperty(process, name, { value: printing() });
  process.argv.length = 1;
  try {
    load(source);
  } catch (error) {
    ending(() => failed(error));
  }
}

/** Calls the function on every tuple of arguments. */
function call(entry) {
  if (typeof entry !== "function") return send("M");
  send("L");
  for (let place = 0; place < calls.length; place++) {
    try {
      const began = TIMED ? cpuUsage() : null;
      writer.bounded(apply(entry, undefined, calls[place]));
      if (TIMED) sendTime(began);
      writer.send("V");
    } catch (error) {
      return sendError(error);
    }
  }
  send("Z");
}

/** The last that this process does. */
function ending(step) {
  try {
    step();
  } finally {
    reallyExit(0);
  }
}

main();
