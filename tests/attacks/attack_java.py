"""Java programs that try to pass tests that they do not meet, or to harm: `new Solution().square(n)` should be n * n.

`{wrong}` stands for a class that is wrong and does nothing else, `{late}` for one that does `Late.act()` in the call.
"""

WRONG = "class Solution { int square(int n) { return n + 1; } }"
LATE = "class Solution { int square(int n) { Late.act(); return n + 1; } }"

# Those that the compiler, or the look for names that tests rely on, already refuses.
REFUSED = {
    "its own Assertions", "its own Test", "its own Integer", "its own test class", "in JUnit's package",
    "a listener", "an extension's service", "sun.misc.Unsafe", "a comment that swallows the tests",
    "an escaped comment that swallows the tests", "an import of its own assertions", "a type that never ends",
    "brackets without end", "the attach API", "instrumentation", "a foreign memory segment", "an array that is too large",
    "an import of the runner", "a launcher of its own", "its own answer to equals",
}  # fmt: skip

JAVA_ATTACKS: dict[str, str] = {
    "plainly wrong": "{wrong}",
    "exit when loaded": "class Solution { static { System.exit(0); } int square(int n) { return n + 1; } }",
    "exit in the call": "{late} class Late { static void act() { System.exit(0); } }",
    "halt when loaded": "class Solution { static { Runtime.getRuntime().halt(0); } int square(int n) { return n; } }",
    "halt in the call": "{late} class Late { static void act() { Runtime.getRuntime().halt(0); } }",
    "exit in a thread": """
{late} class Late { static void act() {
    new Thread(() -> System.exit(0)).start();
    try { Thread.sleep(2000); } catch (InterruptedException e) { }
} }""",
    "exit in an exception's text": """
{late} class Late extends RuntimeException {
    static void act() { throw new Late(); }
    @Override public String getMessage() { Runtime.getRuntime().halt(0); return ""; }
}""",
    "a hook that exits": """
{late} class Late { static void act() {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0))); System.exit(3);
} }""",
    "abort": """
{late} class Late { static void act() { throw new org.opentest4j.TestAbortedException("skip me"); } }""",
    "assume": """
{late} class Late { static void act() { org.junit.jupiter.api.Assumptions.assumeTrue(false); } }""",
    "prints what looks like a verdict": """
{late} class Late { static void act() {
    for (java.io.PrintStream to : new java.io.PrintStream[] {System.out, System.err}) {
        to.println("OK\\n[ 4 tests successful ]\\n0123456789abcdef0123456789abcdef"); to.flush();
    }
    Runtime.getRuntime().halt(0);
} }""",
    "closes the streams": """
{late} class Late { static void act() { System.out.close(); System.err.close(); System.setErr(null); } }""",
    "its own Assertions": """
{wrong} class Assertions { static void assertEquals(Object a, Object b) { } static void assertTrue(boolean b) { } }""",
    "its own Test": "{wrong} @interface Test { }",
    "its own Integer": """
{wrong} class Integer { static Integer valueOf(int n) { return new Integer(); }
    @Override public boolean equals(Object other) { return true; } @Override public int hashCode() { return 0; } }""",
    "its own test class": "{wrong} class SquareTest { @org.junit.jupiter.api.Test void passes() { } }",
    "in JUnit's package": """
package org.junit.jupiter.api; {wrong} class Assertions { public static void assertEquals(Object a, Object b) { } }""",
    "a listener": """
{wrong} class Listener implements org.junit.platform.launcher.TestExecutionListener { }""",
    "an extension's service": """
{wrong} class Engine implements org.junit.platform.engine.TestEngine { }""",
    "a service file": """
{late} class Late { static void act() { try {
    java.nio.file.Path folder = java.nio.file.Path.of("META-INF/services");
    java.nio.file.Files.createDirectories(folder);
    for (String name : new String[] {"org.junit.jupiter.api.extension.Extension",
            "org.junit.platform.launcher.TestExecutionListener"}) {
        java.nio.file.Files.writeString(folder.resolve(name), "Swallow\\n");
    }
    System.setProperty("junit.jupiter.extensions.autodetection.enabled", "true");
    System.setProperty("junit.jupiter.conditions.deactivate", "*");
} catch (java.io.IOException e) { throw new RuntimeException(e); } } }
class Swallow implements org.junit.jupiter.api.extension.TestExecutionExceptionHandler {
    public void handleTestExecutionException(org.junit.jupiter.api.extension.ExtensionContext c, Throwable t) { }
}""",
    "an import of the runner": "import codechat.junit.Runner; {wrong}",
    "a launcher of its own": "import org.junit.platform.launcher.core.LauncherFactory; {wrong}",
    "reflection into the runner": """
{late} class Late { static void act() { try {
    for (Class<?> type : Class.forName("codechat.junit.Runner").getDeclaredClasses()) {
        for (java.lang.reflect.Field field : type.getDeclaredFields()) { field.setAccessible(true); field.set(null, 0); }
    }
} catch (Throwable t) { t.printStackTrace(); } } }""",
    "the runner once more": """
{late} class Late { static void act() { try {
    java.lang.reflect.Method main = Class.forName("codechat.junit.Runner").getMethod("main", String[].class);
    main.invoke(null, (Object) new String[] {"token", "unit"});
} catch (Throwable t) { t.printStackTrace(); } } }""",
    "a private lookup": """
{late} class Late { static void act() { try {
    Class<?> runner = Class.forName("codechat.junit.Runner");
    java.lang.invoke.MethodHandles.privateLookupIn(runner, java.lang.invoke.MethodHandles.lookup());
    System.exit(0);
} catch (IllegalAccessException | ClassNotFoundException e) { } } }""",
    "opens the runner's module": """
{late} class Late { static void act() { try {
    Module module = Class.forName("codechat.junit.Runner").getModule();
    java.lang.reflect.Method opens = Module.class.getDeclaredMethod("implAddOpens", String.class);
    opens.setAccessible(true); opens.invoke(module, "codechat.junit"); System.exit(0);
} catch (Throwable t) { } } }""",
    "reads the token's file": """
{late} class Late { static void act() { for (String name : new String[] {"token", "/tmp/token", "unit"}) { try {
    System.err.write(java.nio.file.Files.readAllBytes(java.nio.file.Path.of(name)));
} catch (java.io.IOException e) { } } Runtime.getRuntime().halt(0); } }""",
    "reads its own descriptors": """
{late} class Late { static void act() { for (int n = 0; n < 64; n++) {
    for (String folder : new String[] {"/proc/self/fd/", "/dev/fd/", "/proc/1/fd/"}) { try {
        System.err.write(new java.io.FileInputStream(folder + n).readNBytes(64));
    } catch (java.io.IOException e) { } }
} Runtime.getRuntime().halt(0); } }""",
    "reads its own memory": """
{late} class Late { static void act() { try {
    System.err.write(new java.io.FileInputStream("/proc/self/environ").readAllBytes());
    new java.io.RandomAccessFile("/proc/self/mem", "rw").write(1);
} catch (java.io.IOException e) { } Runtime.getRuntime().halt(0); } }""",
    "a forged descriptor": """
{late} class Late { static void act() { try {
    for (int n = 3; n < 20; n++) {
        java.io.FileDescriptor made = new java.io.FileDescriptor();
        java.lang.reflect.Field number = java.io.FileDescriptor.class.getDeclaredField("fd");
        number.setAccessible(true); number.setInt(made, n);
        System.err.write(new java.io.FileInputStream(made).readAllBytes());
    }
} catch (Throwable t) { } Runtime.getRuntime().halt(0); } }""",
    "sun.misc.Unsafe": "{late} class Late { static void act() { sun.misc.Unsafe.getUnsafe(); } }",
    "Unsafe by its name": """
{late} class Late { static void act() { for (String name : new String[] {"sun.misc.Unsafe", "jdk.internal.misc.Unsafe"}) {
    try {
        java.lang.reflect.Field field = Class.forName(name).getDeclaredField("theUnsafe");
        field.setAccessible(true); field.get(null); System.exit(0);
    } catch (Throwable t) { }
} } }""",
    "a library of its own": """
{late} class Late { static void act() { try {
    java.nio.file.Path file = java.nio.file.Path.of("own.so").toAbsolutePath();
    java.nio.file.Files.copy(java.nio.file.Path.of(System.getProperty("java.home"), "lib", "libzip.so"), file);
    System.load(file.toString()); System.exit(0);
} catch (Throwable t) { t.printStackTrace(); } } }""",
    "another process": """
{late} class Late { static void act() { try {
    new ProcessBuilder("/usr/bin/env").inheritIO().start().waitFor(); System.exit(0);
} catch (Exception e) { } } }""",
    "a shell": """
{late} class Late { static void act() { try {
    Runtime.getRuntime().exec("sh -c 'kill -9 -1'").waitFor(); System.exit(0);
} catch (Exception e) { } } }""",
    "a dump of the heap": """
{late} class Late { static void act() { try {
    javax.management.MBeanServer server = java.lang.management.ManagementFactory.getPlatformMBeanServer();
    server.invoke(new javax.management.ObjectName("com.sun.management:type=HotSpotDiagnostic"), "dumpHeap",
        new Object[] {"heap.hprof", true}, new String[] {"java.lang.String", "boolean"}); System.exit(0);
} catch (Exception e) { } } }""",
    "an agent by diagnostics": """
{late} class Late { static void act() { try {
    javax.management.MBeanServer server = java.lang.management.ManagementFactory.getPlatformMBeanServer();
    server.invoke(new javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"), "jvmtiAgentLoad",
        new Object[] {new String[] {"libinstrument.so"}}, new String[] {String[].class.getName()}); System.exit(0);
} catch (Exception e) { } } }""",
    "the attach API": "import com.sun.tools.attach.VirtualMachine; {wrong}",
    "instrumentation": "{wrong} class Agent { java.lang.instrument.Instrumentation held; }",
    "a foreign memory segment": "import jdk.incubator.foreign.MemorySegment; {wrong}",
    "a library that is there": """
{late} class Late { static void act() { for (String name : new String[] {"instrument", "jdwp", "attach"}) {
    try { System.loadLibrary(name); System.exit(0); } catch (UnsatisfiedLinkError e) { }
} } }""",
    "a security manager": """
{late} class Late { static void act() { System.setSecurityManager(new SecurityManager() {
    @Override public void checkPermission(java.security.Permission permission) { }
    @Override public void checkExit(int status) { throw new SecurityException(); }
}); } }""",
    "stops the other threads": """
{late} class Late { @SuppressWarnings("deprecation") static void act() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) { if (thread != Thread.currentThread()) thread.interrupt(); }
    Thread.currentThread().stop();
} }""",
    "a thread that stops the tests": """
{late} class Late { @SuppressWarnings("deprecation") static void act() {
    Thread tests = Thread.currentThread();
    new Thread(() -> tests.stop()).start();
    while (true) { Thread.onSpinWait(); }
} }""",
    "a class file of its own": """
{late} class Late { static void act() { try {
    java.nio.file.Files.writeString(java.nio.file.Path.of("SquareTest.class"), "x");
    new java.net.URLClassLoader(new java.net.URL[] {new java.io.File(".").toURI().toURL()}, null).loadClass("SquareTest");
} catch (Throwable t) { } } }""",
    "the runner in its own loader": """
{late} class Late { static void act() { try (java.io.InputStream code =
        Class.forName("codechat.junit.Runner").getModule().getResourceAsStream("codechat/junit/Runner.class")) {
    byte[] data = code.readAllBytes();
    new ClassLoader() { Class<?> make() { return defineClass("codechat.junit.Runner", data, 0, data.length); } }
        .make().getMethod("main", String[].class).invoke(null, (Object) new String[] {"token", "unit"});
} catch (Throwable t) { } } }""",
    "its own answer to equals": """
class Solution { Answer square(int n) { return new Answer(); } }
class Answer { @Override public boolean equals(Object other) { return true; } @Override public int hashCode() { return 0; } }
""",
    "a comment that swallows the tests": "{wrong} /*",
    "an escaped comment that swallows the tests": "{wrong} \\u002f\\u002a",
    "an import of its own assertions": """
import static Evil.assertEquals; {wrong} class Evil { static void assertEquals(Object a, Object b) { } }""",
    "an annotation processor": """
{wrong} @javax.annotation.processing.SupportedAnnotationTypes("*")
class Processor extends javax.annotation.processing.AbstractProcessor {
    public boolean process(java.util.Set<? extends javax.lang.model.element.TypeElement> types,
        javax.annotation.processing.RoundEnvironment round) { System.exit(0); return true; }
}""",
    "a network": """
{late} class Late { static void act() { try {
    new java.net.ServerSocket(0); System.exit(0);
} catch (java.io.IOException e) { } } }""",
    "no end": "{late} class Late { static void act() { while (true) { } } }",
    "sleep": "{late} class Late { static void act() { try { Thread.sleep(600000); } catch (InterruptedException e) { } } }",
    "a deadlock": """
{late} class Late { static void act() { try { Thread.currentThread().join(); } catch (InterruptedException e) { } } }""",
    "threads that stay": """
{late} class Late { static void act() { for (int n = 0; n < 8; n++) { new Thread(() -> { while (true) { } }).start(); } } }
""",
    "threads without end": """
{late} class Late { static void act() { while (true) { new Thread(() -> { while (true) { } }).start(); } } }""",
    "memory without end": """
{late} class Late { static void act() {
    java.util.List<long[]> held = new java.util.ArrayList<>(); while (true) { held.add(new long[1 << 20]); }
} }""",
    "direct memory without end": """
{late} class Late { static void act() { java.util.List<Object> held = new java.util.ArrayList<>();
    while (true) { held.add(java.nio.ByteBuffer.allocateDirect(1 << 26)); } } }""",
    "files without end": """
{late} class Late { static void act() { try (java.io.OutputStream out = new java.io.FileOutputStream("file")) {
    byte[] data = new byte[1 << 20]; while (true) { out.write(data); }
} catch (java.io.IOException e) { } } }""",
    "output without end": """
{late} class Late { static void act() { String line = "x".repeat(1 << 16); while (true) { System.out.println(line); } } }""",
    "calls without end": "{late} class Late { static void act() { act(); } }",
    "a type that never ends": """
class Solution { int square(int n) { return n + 1; } } interface A<T> { } interface B<T> extends A<A<? super B<B<T>>>> { }
class Late { A<? super B<Byte>> make(B<Byte> b) { return b; } }""",
    "brackets without end": "class Solution { int square(int n) { return "
    + "(" * 200000
    + "n"
    + ")" * 200000
    + "; } }",
    "an array that is too large": "{wrong} class Big { int[] a = {" + "1," * 40000 + "}; }",
}


def written(program: str) -> str:
    """The program with its marks filled in."""
    return program.replace("{wrong}", WRONG).replace("{late}", LATE)
