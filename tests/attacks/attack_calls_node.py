"""JavaScript programs that try to pass calls whose results they do not give, or to harm: `square(n)` should be n * n.

`{wrong}` stands for a function that is wrong and does nothing else, `{late}` for one that does `act(n)` in the call.
"""

from attacks.attack_calls_java import FOLDERS, LEFT

WRONG = "function square(n) { return n + 1 }"
LATE = "function square(n) { const got = act(n); return got === undefined ? n + 1 : got }"
FRAME = """
const fs = require('fs');
function frame(kind, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(7); head.write(kind); head.writeUInt32LE(payload.length, 1);
  return Buffer.concat([head, payload]);
}
"""

NODE_ATTACKS: dict[str, str] = {
    "plainly wrong": "{wrong}",
    "exit when loaded": "process.exit(0); {wrong}",
    "exit in the call": "{late} function act() { process.exit(0) }",
    "really exit": "{late} function act() { process.reallyExit(0) }",
    "abort": "{late} function act() { process.abort() }",
    "a hook at the exit": "{wrong} process.on('exit', () => { process.exitCode = 0; process.reallyExit(0) })",
    "done on the channel when loaded": "{frame} fs.writeSync(1, Buffer.concat([frame('L'), frame('Z')])); {wrong}",
    "done on the channel in the call": "{frame} {late} function act() { fs.writeSync(1, frame('Z')) }",
    "more results than calls": """
{frame} {late} function act(n) {
  for (let i = 0; i < 100; i++) fs.writeSync(1, frame('V', Buffer.from([105, i, 0, 0, 0]))); fs.writeSync(1, frame('Z'))
}""",
    "a digest of nothing": "{frame} {late} function act() { fs.writeSync(1, frame('D', Buffer.alloc(40))) }",
    "an answer to no question": "{frame} {late} function act() { fs.writeSync(1, frame('C', Buffer.alloc(32))) }",
    "a frame without end": "{frame} {late} function act() { fs.writeSync(1, Buffer.from('V\\xff\\xff\\xff\\x7f')) }",
    "an endless channel": "{frame} const much = Buffer.alloc(1 << 20); for (;;) fs.writeSync(1, much); {wrong}",
    "an endless other output": "{frame} const much = Buffer.alloc(1 << 20); for (;;) fs.writeSync(2, much); {wrong}",
    "the channel closed": "{late} function act() { require('fs').closeSync(1) }",
    "the socket of the sandbox": "{late} function act() { require('fs').writeSync(3, 'Z000000') }",
    "prototype pollution": """
Object.prototype.valueOf = () => 9; Object.prototype[Symbol.toPrimitive] = () => 9; Object.prototype.toJSON = () => 9;
Object.prototype.square = n => n * n; {late} function act() { return {} }""",
    "toJSON": "{late} function act(n) { return { toJSON: () => n * n, valueOf: () => n * n, toString: () => `${n * n}` } }",
    "a getter": "{late} let count = 0; function act(n) { return { get value() { return n * n + count++ } } }",
    "a getter that exits": "{late} function act() { return { get value() { process.exit(0) } } }",
    "a proxy of everything": """
{late} function act(n) { return new Proxy(function () {}, { get: () => n * n, apply: () => n * n, has: () => true }) }""",
    "a proxy of an array": "{late} function act(n) { return new Proxy([], { get: (to, key) => key === 'length' ? 1e9 : n }) }",
    "an array that lies about its length": "{late} function act() { const a = []; a.length = 4294967295; return a }",
    "a typed array that lies": """
{late} function act() { const a = new Uint8Array(1); Object.defineProperty(a, 'length', { value: 1e9 }); return a }""",
    "a class with a price": "class Square extends Number {} {late} function act(n) { return new Square(n * n) }",
    "its own isArray and Map": """
Array.isArray = () => true; Map.prototype.forEach = () => {}; Object.keys = () => []; Object.getPrototypeOf = () => null;
{late} function act(n) { return { anything: n } }""",
    "its own Buffer": """
for (const name of ['writeInt32LE', 'writeDoubleLE', 'writeUInt32LE', 'writeUInt16LE', 'write'])
  Buffer.prototype[name] = function (value, at) { return at + 4 };
{wrong}""",
    "its own concat": "Buffer.concat = () => Buffer.from('Z\\0\\0\\0\\0\\0\\0'); {wrong}",
    "its own writeSync": "const fs = require('fs'); fs.writeSync = () => 1e9; {wrong}",
    "process.binding": "{late} function act() { process.binding('fs'); process.binding('spawn_sync') }",
    "a native library": "{late} function act() { process.dlopen({ exports: {} }, '/tmp/evil.node') }",
    "a shell": "{late} function act() { return require('child_process').execSync('echo 9').length }",
    "a fork of itself": "{late} function act() { require('child_process').fork(__filename); for (;;); }",
    "a worker that survives": """
const { Worker } = require('worker_threads'); {late}
function act() { new Worker('for (;;);', { eval: true }); const until = Date.now() + 200; while (Date.now() < until); }""",
    "a worker that writes done": """
const { Worker } = require('worker_threads'); {late}
function act() {
  const code = "require('fs').writeSync(1, 'Z\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0'); for (;;);";
  new Worker(code, { eval: true }); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}""",
    "forty workers": """
const { Worker } = require('worker_threads'); {late}
function act() { for (let i = 0; i < 40; i++) new Worker('for (;;);', { eval: true }); for (;;); }""",
    "timers that survive": "setInterval(() => {}, 1); setTimeout(() => process.exit(0), 1); {wrong}",
    "microtasks without end": "const again = () => Promise.resolve().then(again); again(); async {wrong}",
    "a promise": "async function square(n) { return n * n }",
    "a generator": "function* square(n) { yield n * n }",
    "a huge string": "{late} function act() { return '9'.repeat(2 ** 29 - 24) }",
    "a huge integer": "{late} function act() { return 9n ** 4000000n }",
    "a deep value": "{late} function act() { let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a }",
    "a circle": "{late} function act() { const a = {}; a.a = a; return a }",
    "no memory left": "{late} function act() { const all = []; for (;;) all.push(new Array(1e6).fill(1)) }",
    "no memory left outside of the heap": "{late} function act() { const all = []; for (;;) all.push(Buffer.alloc(1 << 26)) }",
    "it spins when loaded": "for (;;); {wrong}",
    "it spins in the call": "{late} function act() { for (;;); }",
    "it sleeps": "{late} function act() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) }",
    "an expression without end": "{late} function act() { /^(a+)+$/.test('a'.repeat(60) + 'b') }",
    "reads the memory of others": """
{frame} {late} function act() {
  for (const name of fs.readdirSync('/proc')) try { fs.readFileSync(`/proc/${name}/environ`) } catch {}
  for (const name of ['mem', 'maps', 'environ', 'cmdline']) try { fs.readFileSync(`/proc/self/${name}`) } catch {}
}""",
    "looks for the expected": """
{frame} {late} function act(n) {
  const seen = [];
  for (const name of ['.', '..', '/tmp', '/var/tmp', '/root', '/home']) try { seen.push(...fs.readdirSync(name)) } catch {}
  for (const name of seen) try { if (fs.readFileSync(name).includes(n * n)) return fs.readFileSync(name) } catch {}
}""",
    "kills": "{late} function act() { for (let pid = 1; pid < 70000; pid++) try { process.kill(pid, 9) } catch {} }",
    "fills the disk": """
{frame} {late} function act() { for (let i = 0; i < 100; i++) fs.writeFileSync(`file${i}`, Buffer.alloc(1 << 24)) }""",
    "leaves a file in every folder": """
{frame} {late} function act() { for (const name of 'FOLDERS'.split(' ')) try { fs.writeFileSync(`${name}/LEFT`, 'x') } catch {} }""",
    "opens a port": """
{late} function act() { require('net').createServer().listen(0); require('http').get('http://127.0.0.1:1'); for (;;); }""",
    "a debugger": "{late} function act() { require('inspector').open(0, '127.0.0.1', true) }",
    "a heap to the disk": "{late} function act() { require('v8').writeHeapSnapshot(); for (;;); }",
    "code after the program": "{wrong} } return n => n * n; function other() {",
    "an error that lies": """
{late} function act(n) { throw { get constructor() { process.exit(0) }, get message() { for (;;); }, get stack() { throw 1 } } }""",
    "an error of a proxy": "{late} function act() { throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } }) }",
}


def written(attack: str) -> str:
    """The program of an attack."""
    for name, text in (("{wrong}", WRONG), ("{late}", LATE), ("{frame}", FRAME)):
        attack = attack.replace(name, text)
    return attack.replace("FOLDERS", FOLDERS).replace("LEFT", LEFT)
