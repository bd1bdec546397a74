"""Java programs that try to pass calls whose results they do not give, or to harm: those against JUnit, and more.

`{wrong}` stands for a class that is wrong and does nothing else, `{late}` for one that does `Late.act(n)` in the call.
"""

from attacks import attack_java

LEFT = "codechat-left-behind"
FOLDERS = "/ /tmp /var/tmp /dev /dev/shm /etc /run /home /root"
"""Where programs write a file, whose name is `LEFT`."""
WRONG = "class Solution { int square(int n) { return n + 1; } }"
LATE = """
class Solution { int square(int n) {
    try { return Late.act(n); } catch (RuntimeException | Error e) { throw e; } catch (Throwable t) { return n + 1; }
} }
abstract class Late0 {
    static byte[] frame(int kind, byte... payload) {
        byte[] all = new byte[7 + payload.length];
        all[0] = (byte) kind;
        for (int i = 0; i < 4; i++) { all[1 + i] = (byte) (payload.length >> 8 * i); }
        System.arraycopy(payload, 0, all, 7, payload.length);
        return all;
    }
    static java.io.OutputStream channel() { return new java.io.FileOutputStream(java.io.FileDescriptor.out); }
}"""


def late(body: str, more: str = "") -> str:
    return f"{{late}} class Late extends Late0 {{ static int act(int n) throws Throwable {{ {body} return n + 1; }} }} {more}"


OF_CALLS: dict[str, str] = {
    "done on the channel when loaded": """
{late} class Late extends Late0 {
    static { try { channel().write(frame('L')); channel().write(frame('Z')); } catch (java.io.IOException e) { } }
    static int act(int n) { return n + 1; }
}""",
    "done on the channel": late("channel().write(frame('Z'));"),
    "done on the channel, and the end": late("channel().write(frame('Z')); Runtime.getRuntime().halt(0);"),
    "results of later calls": late(
        "for (int i = 0; i < 100; i++) { channel().write(frame('V', (byte) 'i', (byte) i, (byte) 0, (byte) 0, (byte) 0)); }"
    ),
    "a digest of nothing": late("channel().write(frame('D', new byte[40]));"),
    "an answer to no question": late("channel().write(frame('C', new byte[32]));"),
    "a frame without end": late("channel().write(new byte[] {'V', -1, -1, -1, 127, 0, 0}); while (true) { }"),
    "an endless channel": late("while (true) { channel().write(new byte[1 << 20]); }"),
    "an endless other output": late(
        "while (true) { new java.io.FileOutputStream(java.io.FileDescriptor.err).write(new byte[1 << 20]); }"
    ),
    "the channel closed": late("channel().close();"),
    "the sandbox's socket": late("new java.io.FileOutputStream(\"/proc/self/fd/3\").write(frame('Z'));"),
    "its own caller": "{wrong} final class CodechatCaller { static int call(int n) { return n * n; } }",
    "its own caller within": "class Solution { int square(int n) { return n + 1; } static class CodechatCaller { } }",
    "another type of result": "class Solution { long square(int n) { return (long) n * n; } }",
    "another type of argument": "class Solution { int square(Integer[] n) { return n[0] * n[0]; } }",
    "a result of its own class": """
class Solution { Sly square(int n) { return new Sly(); } }
class Sly extends Number { public int intValue() { return 9; } public long longValue() { return 9; }
    public float floatValue() { return 9; } public double doubleValue() { return 9; }
    public boolean equals(Object o) { return true; } }""",
    "calls of the runner": late(
        'Class.forName("codechat.junit.Calls").getMethod("main", String[].class).invoke(null, (Object) new String[2]);'
    ),
    "the runner's writer": late(
        'var to = Class.forName("codechat.junit.Calls").getDeclaredMethod("send", char.class, byte[].class);'
        " to.setAccessible(true); to.invoke(null, 'Z', new byte[0]);"
    ),
    "a thread that writes done": late(
        "new Thread(() -> { try { channel().write(frame('Z')); } catch (java.io.IOException e) { } }).start();"
        " Thread.sleep(100);"
    ),
    "leaves a file in every folder": late(
        f'for (String name : "{FOLDERS}".split(" ")) {{'
        f' try {{ java.nio.file.Files.writeString(java.nio.file.Path.of(name, "{LEFT}"), "x"); }}'
        " catch (java.io.IOException e) { } }"
    ),
    "looks for what it was given": late(
        'for (String name : new String[] {"arguments", "unit", "token"}) {'
        " if (java.nio.file.Files.exists(java.nio.file.Path.of(name))) { System.exit(7); } }"
    ),
}

# Of those against JUnit the ones that end, harm or reach out, whoever runs the tests.
OF_BOTH = (
    "plainly wrong", "exit when loaded", "exit in the call", "halt in the call", "exit in a thread", "closes the streams",
    "a hook that exits", "reads its own descriptors", "reads its own memory", "a forged descriptor", "a security manager",
    "Unsafe by its name", "a library of its own", "another process", "a shell", "a class file of its own", "a network",
    "no end", "sleep", "threads that stay", "threads without end", "memory without end", "files without end",
    "output without end", "calls without end", "a type that never ends",
)  # fmt: skip
JAVA_ATTACKS: dict[str, str] = {
    **{name: attack_java.written(attack_java.JAVA_ATTACKS[name]) for name in OF_BOTH},
    **OF_CALLS,
}


def written(attack: str) -> str:
    """The program of an attack."""
    return attack.replace("{wrong}", WRONG).replace("{late}", LATE)
