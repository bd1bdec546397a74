"""Wrong programs by the hundred that try to have their calls taken for right ones, in JavaScript, Java and Python.

An attempt is the name of a suite and a source. `SUITES` has for each name the arguments and the right results; no
source computes them. Attempts are made from short lists, so that their number is a product.
"""

import itertools
import unicodedata
from collections.abc import Iterator
from typing import Any

Attempt = tuple[str, str]
SUITES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "square": ((3, -4, 5, 1000), (9, 16, 25, 1000000)),
    "table": ((1,), ({0: 1, 13: 2},)),
    "texts": ((1,), ({"a": "1"},)),
    "nothing": ((1,), (None,)),
    "items": ((1,), ([1, [2, 3], "a"],)),
    "both": ((1,), ({1, 2},)),
    "truth": ((1,), (True,)),
    "text": ((1,), ("\u00e9",)),
    "half": ((1,), (0.5,)),
    "large": ((1,), (2**53 + 1,)),
}
DIGITS = [
    f"1{chr(point + 2)}"
    for point in range(0x80, 0x20000)
    if unicodedata.category(chr(point)) == "Nd" and unicodedata.digit(chr(point), None) == 1
]
"""13 with one digit of every script but the Latin one."""
# What looks like the result of a suite and is another one.
LOOKS_OF_NODE: dict[str, list[str]] = {
    "table": [
        *(f"{{0: 1, '{key}': 2}}" for key in (*DIGITS, "+13", " 13", "13 ", "13\\n", "013", "1_3", "0xd", "13.0", "1e1", "13n", "\\u200b13")),
        *(f"{{'{key}': 1, 13: 2}}" for key in ("-0", "+0", "00", "-00", "", " ", "null", "false", "0.0", "-0.0")),
        "new Map([[-0.5, 1], [13, 2]])", "new Map([[0, 1], ['0', 1], [13, 2]])", "new Map([[[0], 1], [13, 2]])",
        "new Map([[0n, 1], [13, 2], [13.0, 2], ['13', 2]])", "[[0, 1], [13, 2]]",
        "new Set([[0, 1], [13, 2]])", "{0: [true], 13: 2}", "{0: '1', 13: 2}", "{0: 1, 13: [2]}", "[1, , , , , , , , , , , , , 2]",
        "{0: 1, 13: 2, then: 0}", "new Proxy(new Map([[0, 1], [13, 2]]), {})", "Object.create({0: 1, 13: 2})",
        "new (class extends Map {})([[0, 1], [13, 2]])", "'{0: 1, 13: 2}'", "new WeakMap()",
    ],
    "texts": ["new Map([[['a'], '1']])", "{a: 1}", "{a: ['1']}", "{a: new String('1')}", "{a: '1', b: undefined}", "[['a', '1']]", "{A: '1'}"],
    "nothing": [
        "undefined", "0", "''", "'null'", "'None'", "false", "[]", "{}", "NaN", "[null]", "Symbol('null')", "() => null",
        "new Proxy({}, {get: () => null, getPrototypeOf: () => null, ownKeys: () => [1]})", "{then: r => r(null)}", "Promise.resolve(null)",
        "{valueOf: () => null, toJSON: () => null}", "document_all",
    ],
    "items": [
        "{0: 1, 1: [2, 3], 2: 'a', length: 3}", "'1,2,3,a'", "[1, 2, 3, 'a']", "[1, [2, 3], 'a', , ]", "[1, [2, 3], ['a']]",
        "new Set([1, [2, 3], 'a'])", "[[1, [2, 3], 'a']]", "[1, [2, 3]]", "[1, [2], 'a']", "[1, [2, 3], new String('a')]",
        "[1n, [2, 3.5], 'a']", "(function () { return arguments })(1, [2, 3], 'a')", "[1, [2, 3], 'a'].values()",
        "[1, '2,3', 'a']", "[1, {0: 2, 1: 3}, 'a']", "{then: r => r([1, [2, 3], 'a'])}", "Promise.resolve([1, [2, 3], 'a'])",
        "Object.assign(() => 1, [1, [2, 3], 'a'])", "new Uint8Array([1, 2, 3])", "{toJSON: () => [1, [2, 3], 'a']}",
    ],
    "both": [
        "[1, 2]", "new Map([[1, 2]])", "{1: 1, 2: 2}", "new Set(['1', '2'])", "new Set([1, 2, 3])", "new Set([[1], [2]])", "new Set([1])",
        "new Set([1, 2, '2'])", "new WeakSet()", "[1, 2].values()", "new Proxy(new Set([1, 2]), {})", "new (class extends Set {})([1, 2])",
        "Object.setPrototypeOf([1, 2, 3], Set.prototype)", "Object.create(Set.prototype)",
    ],
    "truth": ["'true'", "[true]", "{}", "new Boolean(true)", "'True'", "Symbol('true')", "{valueOf: () => true}", "2", "undefined"],
    "text": [
        "'e\\u0301'", "'\\u00e9\\0'", "'\\ufeff\\u00e9'", "new String('\\u00e9')", "['\\u00e9']", "Buffer.from('\\u00e9')", "'\\u00c9'",
        "'\\udcc3\\udca9'", "'\\u00c3\\u00a9'", "Symbol('\\u00e9')", "'\\\\u00e9'", "{toString: () => '\\u00e9'}",
    ],
    "half": ["'0.5'", "[0.5]", "new Number(0.5)", "NaN", "Infinity", "0.50001", "{valueOf: () => 0.5}", "-0.5", "0", "1"],
    "large": ["2 ** 53", "'9007199254740993'", "9007199254740994n", "[9007199254740993n]", "Object(9007199254740993n)", "Infinity", "NaN"],
}  # fmt: skip
# What stands before a wrong function, to have another one called, or its results changed on their way.
THEN = "function (done) { done((n) => n * n) }"
RIGHT_OF = "(v) => (typeof v === 'number' ? (v - 1) ** 2 : v)"  # of the wrong result n + 1
PROMISED = [
    f"square.then = {THEN};",
    f"Object.defineProperty(square, 'then', {{ get() {{ return {THEN} }} }});",
    *(f"{owner}.prototype.then = {THEN};" for owner in ("Function", "Object", "Array", "Promise", "Number")),
    *(
        f"Object.defineProperty({owner}.prototype, 'then', {{ get() {{ return {THEN} }}, configurable: true }});"
        for owner in ("Function", "Object", "Array", "Promise")
    ),
    "Promise.prototype.finally = function () { return { then() {} } };",
    "Promise.resolve = () => ({ then: (done) => done((n) => n * n) });",
    "globalThis.Promise = class { constructor(make) { make(() => {}) } then(done) { done((n) => n * n) } };",
    "Object.defineProperty(Promise, Symbol.species, { get: () => class { constructor(make) { make((f) => f, () => {}) } } });",
    "Object.defineProperty(Promise.prototype, 'constructor', { get: () => ({ [Symbol.species]: class { constructor(m) { m((f) => f, (f) => f) } } }) });",
    "globalThis.queueMicrotask = (step) => step((n) => n * n);",
    "process.nextTick = (step) => step((n) => n * n);",
    "square[Symbol.toPrimitive] = () => (n) => n * n;",
    "Object.setPrototypeOf(square, async function () {});",
    "square.call = square.apply = square.bind = (_, n) => n * n;",
    "Function.prototype.call = function (self, n) { return n * n };",
    "Function.prototype.apply = function (self, [n]) { return n * n };",
    "Reflect.apply = (f, self, [n]) => n * n;",
    "exports.square = module.exports.codechat_entry = (n) => n * n;",
    "require.cache[__filename] = { exports: { square: (n) => n * n } };",
    "globalThis.square = (n) => n * n;",
    "process.on('exit', () => {});",
]
CHANGED = [
    "Array.prototype[Symbol.iterator] = function* () { for (let i = 0; i < this.length; i++) yield typeof this[i] === 'number' ? this[i] ** 2 - 1 : this[i] };",
    "Object.defineProperty(Array.prototype, '0', { set(v) { Object.defineProperty(this, '0', { value: v ** 2 - 1, writable: true }) } });",
    *(f"Array.prototype.{name} = function () {{ return [1] }};" for name in ("map", "push", "slice", "shift", "at", "forEach", "concat")),
    *(
        f"{{ const real = {owner}.{name}; {owner}.{name} = function (...given) {{ return real.apply(this, given.map({RIGHT_OF})) }} }}"
        for owner, name in (
            ("Buffer.prototype", "writeInt32LE"), ("Buffer.prototype", "writeDoubleLE"), ("Buffer.prototype", "writeUInt16LE"),
            ("Buffer.prototype", "writeUInt32LE"), ("Buffer.prototype", "write"), ("Buffer.prototype", "utf8Write"),
            ("Buffer.prototype", "fill"), ("Object", "is"), ("Math", "abs"), ("Math", "floor"), ("Number", "isSafeInteger"),
            ("Number", "isInteger"), ("String.prototype", "charCodeAt"), ("String.prototype", "codePointAt"), ("String", "fromCodePoint"),
            ("BigInt.prototype", "toString"), ("Array", "isArray"), ("Array", "from"), ("Object", "keys"), ("Object", "getPrototypeOf"),
            ("Object", "defineProperty"), ("ArrayBuffer", "isView"), ("Reflect", "apply"), ("JSON", "parse"), ("JSON", "stringify"),
            ("Map.prototype", "forEach"), ("Set.prototype", "forEach"), ("Buffer", "byteLength"), ("Buffer", "alloc"), ("Buffer", "from"),
            ("Function.prototype", "call"), ("Function.prototype", "apply"), ("Function.prototype", "bind"), ("Symbol", "for"),
        )
    ),
    f"globalThis.Number = {RIGHT_OF};",
    f"globalThis.Object = {RIGHT_OF};",
    "globalThis.Buffer = { alloc: () => [] };",
    "globalThis.Reflect = { apply: (f, self, [n]) => n * n };",
    *(
        f"Object.defineProperty(Object.prototype, '{name}', {{ get() {{ return 9 }}, set() {{}}, configurable: true }});"
        for name in ("at", "data", "length", "0", "value", "entry", "codechat_entry", "square", "default")
    ),
    "Error.prepareStackTrace = (error, places) => places.map((each) => each.getFunction()?.(9)); new Error().stack;",
    "try { null.x } catch (error) { error.constructor.captureStackTrace(globalThis) }",
    "process.argv[2] = 'right'; globalThis.right = (n) => n * n;",
]  # fmt: skip
WRONG_OF_NODE = {
    "a function": "function square(n) { return n + 1 }",
    "an export": "var square = (n) => n + 1; exports.square = square;",
}
MODULE = "export function square(n) { return n + 1 }\n"
OF_MODULES = [
    "export function then(done) { done({ codechat_entry: (n) => n * n }) }",
    "export const then = (done) => done({ codechat_entry: (n) => n * n, then: undefined });",
    "export { square as then };",
    "export default { then(done) { done((n) => n * n) } };",
    "square.then = (done) => done({ codechat_entry: (n) => n * n });",
    "const real = Promise.prototype.then; Promise.prototype.then = function (done, not) { return real.call(this, () => done({ codechat_entry: (n) => n * n }), not) };",
    "Object.defineProperty(Promise.prototype, 'constructor', { get: () => class { constructor(make) { make((f) => f, (f) => f) } } });",
    "Object.prototype.then = (done) => done({ codechat_entry: (n) => n * n });",
    "import { writeFileSync } from 'fs';\nwriteFileSync('between.mjs', 'export const codechat_entry = (n) => n * n');",
    "import { writeFileSync } from 'fs';\nwriteFileSync('program.mjs', 'export const codechat_entry = (n) => n * n');",
    "await import('./between.mjs');",
    "throw new SyntaxError('program.js:1');",
]
FRAMES_OF_NODE = """
const fs = require('fs');
const frame = (kind, ...bytes) => { const head = Buffer.alloc(7); head.write(kind); head.writeUInt32LE(bytes.length, 1); return Buffer.concat([head, Buffer.from(bytes)]) };
const frames = { L: frame('L'), Z: frame('Z'), V: frame('V', 105, 4, 0, 0, 0), U: frame('V', 46), D: frame('D', ...Array(40).fill(0)), C: frame('C', ...Array(32).fill(0)), T: frame('T', ...Array(8).fill(0)), M: frame('M'), S: frame('S'), B: frame('B') };
const say = (kinds) => { for (const kind of kinds) fs.writeSync(1, frames[kind]) };
"""


def sequences(kinds: str, most: int) -> Iterator[str]:
    """Frames in every order, up to so many."""
    for count in range(1, most + 1):
        yield from map("".join, itertools.product(kinds, repeat=count))


def of_node() -> Iterator[Attempt]:
    """Attempts in JavaScript."""
    for suite, looks in LOOKS_OF_NODE.items():
        for look in looks:
            yield suite, f"const document_all = undefined; function {suite}(n) {{ return {look} }}"
    for trick in (*PROMISED, *CHANGED):
        for wrong in WRONG_OF_NODE.values():
            yield "square", f"{wrong}\n{trick}"
    for trick in OF_MODULES:
        yield "square", MODULE + trick
    for kinds in (*sequences("LVZD", 2), "LZZ", "VVVVZ", "LVVVVZ", "UUUUZ", "DCDCZ", "TVTVZ", "MZ", "SZ", "XZ", "BZ"):
        yield "square", f"{FRAMES_OF_NODE} say('{kinds}'); {WRONG_OF_NODE['a function']}"
        yield "square", f"{FRAMES_OF_NODE} function square(n) {{ say('{kinds}'); return n + 1 }}"


LOOKS_OF_JAVA: dict[str, list[str]] = {
    "table": [
        *(f'Map.of(0, 1, "{key}", 2)' for key in (*DIGITS[::6], "+13", " 13", "013", "13.0")),
        *(f'Map.of("{key}", 1, 13, 2)' for key in ("-0", "00", "", "+0")),
        "Map.of(-0.5, 1, 13, 2)", 'new TreeMap<>(Map.of("-0", 1))', "List.of(List.of(0, 1), List.of(13, 2))", "new Object()",
        "new IdentityHashMap<Object, Object>(Map.of(0, 1))",
    ],
    "nothing": ['Optional.of("null")', "0", "false", '""', "List.of()", "Map.of()", "new Object()", "Double.NaN", "Optional.of(Optional.of(0))"],
    "items": [
        '"1,2,3,a"', 'List.of(1, 2, 3, "a")', 'new Object[] {1, 2, "a"}', 'Set.of(1, List.of(2, 3), "a")', "List.of()",
        'List.of(1, List.of(2, 3), "a").iterator()', 'List.of(1, List.of(2, 3), "a").stream()', 'List.of(List.of(1, List.of(2, 3), "a"))',
        'Optional.of(List.of(1, List.of(2, 3)))', 'List.of(1, List.of("2", 3), "a")', 'new Sly(List.of(1, List.of(2, 3), "a"))',
    ],
    "both": ["List.of(1, 2)", "Map.of(1, 2)", 'Set.of("1", "2")', "Set.of(1, 2, 3)", "EnumSet.noneOf(Thread.State.class)", "new int[] {1, 2}", "BitSet.valueOf(new long[] {6})"],
    "truth": ['"true"', "List.of(true)", "Optional.of(\"true\")", "new Object()", "2", "new java.util.concurrent.atomic.AtomicBoolean(true)"],
    "text": ['"e\\u0301"', '"\\u00e9\\0"', "List.of('\\u00e9')", "new Object()", '"\\u00e9".getBytes()', '"\\u00c9"', '"\\u00c3\\u00a9"'],
    "half": ['"0.5"', "List.of(0.5)", "Double.NaN", "0.50001f", "1", "new java.math.BigDecimal(\"0.5\")"],
    "large": ["9007199254740992L", '"9007199254740993"', "(double) (1L << 53)", "Long.MAX_VALUE", 'new java.math.BigDecimal("9007199254740993")'],
}  # fmt: skip
JAVA = """import java.util.*;
class Solution {{ Object {name}(int n) throws Throwable {{ {body} }} }}
class Sly extends Number {{
    Sly(Object of) {{ }}
    public int intValue() {{ return 9; }} public long longValue() {{ return 9; }}
    public float floatValue() {{ return 9; }} public double doubleValue() {{ return 9; }}
    public boolean equals(Object o) {{ return true; }} public int hashCode() {{ return 9; }} public String toString() {{ return "9"; }}
}}"""
FRAMES_OF_JAVA = """var to = new java.io.FileOutputStream(java.io.FileDescriptor.out);
for (char kind : "{kinds}".toCharArray()) {{
    byte[] data = switch (kind) {{ case 'V' -> new byte[] {{105, 4, 0, 0, 0}}; case 'D' -> new byte[40]; case 'T' -> new byte[8]; default -> new byte[0]; }};
    var frame = java.nio.ByteBuffer.allocate(7 + data.length).order(java.nio.ByteOrder.LITTLE_ENDIAN);
    to.write(frame.put((byte) kind).putInt(data.length).putShort((short) 0).put(data).array());
}} return n + 1;"""


def of_java() -> Iterator[Attempt]:
    """Attempts in Java, whose method gives any `Object`."""
    for suite, looks in LOOKS_OF_JAVA.items():
        for look in looks:
            yield suite, JAVA.format(name=suite, body=f"return {look};")
    for kinds in ("Z", "VZ", "VVVVZ", "LZ", "LVVVVZ", "DDDDZ", "TVTVZ", "X", "M", "S"):
        yield "square", JAVA.format(name="square", body=FRAMES_OF_JAVA.format(kinds=kinds))
    for body in (
        "return new Sly(n);",
        "throw new Error(new Sly(n).toString());",
        "return List.of(n * n).get(0).equals(n);",
    ):
        yield "square", JAVA.format(name="square", body=body)


LOOKS_OF_PYTHON: dict[str, list[str]] = {
    "square": [
        "Equal(n)", "Number(n)", "[n * n]", "(n * n,)", "str(n * n)", "lambda: n * n", "iter([n * n])", "Awaited(n)", "later(n)", "bytes([9])",
        "type('int', (Equal,), {})(n)", "memoryview(b'9')", "range(n * n)", "{n * n}", "{n * n: n * n}", "Ellipsis", "NotImplemented",
    ],
    "table": [
        *(f"{{0: 1, '{key}': 2}}" for key in (*DIGITS[::4], "13", "-13")), "{'0': 1, '13': 2}", "{0: 1, 13.5: 2}", "[(0, 1), (13, 2)]",
        "Table()", "{0: 1, 13: 2, None: 3}", "{0: 1, (13,): 2}", "[0, 13]", "{0, 13}", "{0: 1, 13: Equal(2)}", "{Equal(0): 1, 13: 2}",
    ],
    "nothing": ["0", "False", "''", "[]", "Equal(None)", "...", "float('nan')", "type(None)", "Awaited(None)", "NotImplemented"],
    "items": [
        "[1, [2, 3], Equal('a')]", "'1,2,3,a'", "[1, 2, 3, 'a']", "iter([1, [2, 3], 'a'])", "{1: 0, 2: 0}", "Items()", "[1, [2, 3], b'a']",
        "[1, [2, '3'], 'a']", "[1, range(2, 4), Equal(1)]", "[Equal(1)] * 3", "map(str, [1])", "Awaited([1, [2, 3], 'a'])",
    ],
    "both": ["[1, 2]", "{1: 1, 2: 2}.values()", "{'1', '2'}", "{Equal(1), Equal(2)}", "{1, 2, 3}", "(1, 2)", "{1}", "range(1, 3)", "Items()"],
    "truth": ["'True'", "[True]", "Equal(True)", "2", "{}", "Awaited(True)", "b'1'", "0.5"],
    "text": ["'e\\u0301'", "'\\u00e9\\0'", "b'\\xc3\\xa9'", "['\\u00e9']", "Equal('\\u00e9')", "'\\u00c9'", "'\\udce9'", "Text()"],
    "half": ["'0.5'", "[0.5]", "Equal(0.5)", "float('nan')", "float('inf')", "0.51", "Awaited(0.5)", "Number(0.5)"],
    "large": ["2 ** 53", "str(2 ** 53 + 1)", "float(2 ** 53)", "Equal(2 ** 53 + 1)", "[2 ** 53 + 1]", "float('inf')"],
}  # fmt: skip
OBJECTS = """
class Equal:
    def __init__(self, *given): pass
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __index__(self): return 9
    __int__ = __float__ = __index__
    def __lt__(self, other): return False
    __gt__ = __lt__
    __class__ = property(lambda self: int)
    def __reduce__(self): return int, (9,)
    def __repr__(self): return '9'
class Number(Equal):
    def __sub__(self, other): return 0
    __rsub__ = __add__ = __sub__
    def __abs__(self): return 0
class Awaited(Equal):
    def __await__(self): return iter(())
    def then(self, done): done(9)
class Table(Equal):
    def keys(self): return [0, 13]
    def __getitem__(self, key): return {0: 1, 13: 2}[key]
class Items(Equal):
    def __len__(self): return 3
    def __iter__(self): return iter([1, [2, 3], 'a'])
class Text(Equal):
    def __str__(self): return '\\u00e9'
async def later(n): return n * n
"""
FRAMES_OF_PYTHON = """
import os, struct
def say(kinds):
    for kind in kinds:
        data = {'V': b'i' + struct.pack('<i', 4), 'D': bytes(40), 'C': bytes(32), 'T': bytes(8)}.get(kind, b'')
        for handle in range(3, 8):
            try: os.write(handle, struct.pack('<cIH', kind.encode(), len(data), 0) + data)
            except OSError: pass
"""


def of_python() -> Iterator[Attempt]:
    """Attempts in Python."""
    for suite, looks in LOOKS_OF_PYTHON.items():
        for look in looks:
            yield suite, f"{OBJECTS}\ndef {suite}(n):\n    return {look}\n"
    for kinds in (*sequences("LVZD", 2), "VVVVZ", "LVVVVZ", "DCDCZ", "TVTVZ", "MZ", "SZ"):
        yield "square", f"{FRAMES_OF_PYTHON}\nsay('{kinds}')\ndef square(n): return n + 1\n"
        yield "square", f"{FRAMES_OF_PYTHON}\ndef square(n):\n    say('{kinds}')\n    return n + 1\n"
