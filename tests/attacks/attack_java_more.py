"""More Java programs that try to pass tests that they do not meet: by their text, and many in one virtual machine."""

# Whole programs; `{wrong}` stands for a class that is wrong and does nothing else.
TEXTS: dict[str, str] = {
    "a character that ends the text": "{wrong} \x1a class Unread {{{",
    "an escaped character that ends the text": "{wrong} \\u001a class Unread {{{",
    "a character that ends the text, within a comment": "{wrong} /* \x1a */ // \x1a",
    "the first line is a comment": "// import\n{wrong}",
    "an escaped end of line behind a comment": "{wrong} // \\u000a class Other { } /*",
    "an escaped end of a comment": "{wrong} /* \\u002a\\u002f class Other { } /* \\u002a/ //",
    "a text block without end": '{wrong} class Other { String s = """\n',
    "an unclosed string": '{wrong} class Other { String s = "',
    "brackets that close more": "{wrong} }",
    "a module": "module evil { }",
    "an open module with a type": "open module evil { } {wrong}",
    "a package with an annotation": "@Deprecated package org.junit.jupiter.api; {wrong}",
    "the package of the runner": "package codechat.junit; {wrong} class Runner { }",
    "two packages": "package a; package b; {wrong}",
    "a class for a package of Java": """
{wrong} class java { static class util { static class List { static Object of(Object a) { return null; } } } }""",
    "a class for JUnit's packages": """
{wrong} class org { static class junit { static class jupiter { static class api { static class Assertions {
    static void assertEquals(Object a, Object b) { } static void assertTrue(boolean b) { } } } } } }""",
    "a class for a package of javax": "{wrong} class javax { }",
    "its own Object": "{wrong} class Object { public boolean equals(Object other) { return true; } }",
    "its own Override": "{wrong} @interface Override { }",
    "its own String": "{wrong} class String { }",
    "its own Integer, as a record": """
{wrong} record Integer(int n) { static Integer valueOf(int n) { return null; } public boolean equals(Object o) { return true; } }""",
    "its own Integer, as an enum": "{wrong} enum Integer { NINE; static Integer valueOf(int n) { return NINE; } }",
    "its own Test, as a record": "{wrong} record Test() { }",
    "its own Assertions, sealed": "{wrong} sealed interface Assertions permits Own { } final class Own implements Assertions { }",
    "the tests' own class": "{wrong} class SquareTest { }",
    "the tests' own class, public": "{wrong} public class SquareTest { @org.junit.jupiter.api.Test void a() { } }",
    "the tests' own class, as an interface": "{wrong} interface SquareTest { }",
    "a subclass of the tests": "{wrong} class Sub extends SquareTest { @Override void small() { } @Override void large() { } }",
    "a class within the tests, by its name": "{wrong} class SquareTest$1 { } class SquareTest$Evil { @org.junit.jupiter.api.Test void a() { } }",
    "the same class twice": "{wrong} class Solution { int square(int n) { return n * n; } }",
    "a test class of its own": "{wrong} class OtherTest { @org.junit.jupiter.api.Test void passes() { } }",
    "JUnit 3's assertions": "import static junit.framework.Assert.*; {wrong}",
    "JUnit 3's assertions, each": """
import static junit.framework.Assert.assertEquals; import static junit.framework.Assert.assertTrue; {wrong}""",
    "JUnit 3's class of assertions": "import junit.framework.Assert; {wrong} class Assertions extends Assert { }",
    "another Integer": "import static java.util.Map.Entry; import java.math.*; {wrong}",
    "another equality": "import static java.util.Objects.*; {wrong}",
    "other assertions from nowhere": "import static nowhere.Assertions.*; {wrong}",
    "its own extension, registered by a constant": """
{wrong} @org.junit.jupiter.api.extension.ExtendWith(Swallow.class) class Late { }
class Swallow implements org.junit.jupiter.api.extension.TestExecutionExceptionHandler {
    public void handleTestExecutionException(org.junit.jupiter.api.extension.ExtensionContext c, Throwable t) { } }""",
    "an extension with a service's name": """
{wrong} class Swallow implements org.junit.jupiter.api.extension.InvocationInterceptor { }""",
    "a result of any type": "class Solution { <T> T square(int n) { return null; } }",
    "a result that is a number of another kind": "class Solution { Number square(int n) { return n * (double) n; } }",
    "a result that is a character": "class Solution { char square(int n) { return (char) (n * n + 1); } }",
    "no result": "class Solution { void square(int n) { } }",
    "an exception that nobody declares": """
class Solution { int square(int n) { throw Solution.<RuntimeException>sneak(new Throwable()); }
    @SuppressWarnings("unchecked") static <T extends Throwable> T sneak(Throwable t) { return (T) t; } }""",
    "a constructor that fails": "class Solution { Solution() { throw new IllegalStateException(); } int square(int n) { return n; } }",
    "an initialiser that fails": "class Solution { static { if (true) throw new Error(); } int square(int n) { return n; } }",
    "an initialiser that never ends": "class Solution { static { while (true) { } } int square(int n) { return n; } }",
    "a native method": "class Solution { native int square(int n); }",
    "an abstract class": "abstract class Solution { abstract int square(int n); }",
    "a result from a switch that yields": "class Solution { int square(int n) { return switch (n) { case 3: yield 9; default: yield 0; }; } }",
    "an assertion": "class Solution { int square(int n) { assert false; return n + 1; } }",
    "a name with a letter like another": "class S\u043elution { int square(int n) { return n * n; } }",
    "marks that change the direction": "{wrong} // \u202e } class Other { \u202c",
    "nothing at all": "",
    "a null character": "{wrong} \x00",
}  # fmt: skip

# Each is true if it got what no program may have; all run in one virtual machine. `Own` is a class of the program.
REACHES: dict[str, str] = {
    "load a library of the system": 'System.load("/lib/x86_64-linux-gnu/libc.so.6"); return true;',
    "load a library of the runtime": 'System.load(System.getProperty("java.home") + "/lib/libnio.so"); return true;',
    "load a library of the runtime by a link": """
Path link = Path.of("own.so"); Files.createSymbolicLink(link, Path.of(System.getProperty("java.home"), "lib", "libnet.so"));
System.load(link.toAbsolutePath().toString()); return true;""",
    "load a library of a JDK": """
try (var all = Files.walk(Path.of("/usr/lib/jvm"))) { for (Path each : (Iterable<Path>) all::iterator)
    if (each.toString().endsWith(".so")) try { System.load(each.toString()); return true; } catch (Throwable t) { } }
return false;""",
    "load any library there is": """
try (var all = Files.walk(Path.of("/usr/lib"), 3)) { for (Path each : (Iterable<Path>) all.limit(3000)::iterator)
    if (each.toString().contains(".so")) try { System.load(each.toString()); return true; } catch (Throwable t) { } }
return false;""",
    "load a library of its own": """
Path copy = Path.of("copy.so").toAbsolutePath(); Files.copy(Path.of(System.getProperty("java.home"), "lib", "libzip.so"), copy);
System.load(copy.toString()); return true;""",
    "load a library by its name": 'System.loadLibrary("nio"); return true;',
    "load a library by a path that is a name": 'System.loadLibrary("../lib/nio"); return true;',
    "load by the runtime's object": 'Runtime.getRuntime().load("/lib/x86_64-linux-gnu/libm.so.6"); return true;',
    "load by the runtime's object and a name": 'Runtime.getRuntime().loadLibrary("net"); return true;',
    "load by reflection": 'System.class.getMethod("load", String.class).invoke(null, "/lib/x86_64-linux-gnu/libm.so.6"); return true;',
    "load a name by reflection": 'System.class.getMethod("loadLibrary", String.class).invoke(null, "nio"); return true;',
    "load by reflection on reflection": """
Method invoke = Method.class.getMethod("invoke", Object.class, Object[].class);
invoke.invoke(System.class.getMethod("loadLibrary", String.class), null, new Object[] {"net"}); return true;""",
    "load by a method handle": """
MethodHandles.lookup().findStatic(System.class, "loadLibrary", MethodType.methodType(void.class, String.class)).invoke("nio");
return true;""",
    "load by a method handle and a path": """
MethodHandles.publicLookup().findStatic(System.class, "load", MethodType.methodType(void.class, String.class))
    .invoke("/lib/x86_64-linux-gnu/libm.so.6"); return true;""",
    "load by a reference to the method": """
java.util.function.Consumer<String> load = System::loadLibrary; List.of("nio", "net").forEach(load); return true;""",
    "load in another thread": """
boolean[] loaded = {false}; Thread t = new Thread(() -> { System.loadLibrary("net"); loaded[0] = true; });
t.setUncaughtExceptionHandler((a, b) -> { }); t.start(); t.join(); return loaded[0];""",
    "load in the common pool": """
return java.util.concurrent.CompletableFuture.supplyAsync(() -> { System.loadLibrary("net"); return true; }).join();""",
    "load with all rights": """
java.security.AccessController.doPrivileged((java.security.PrivilegedAction<Void>) () -> { System.loadLibrary("net"); return null; });
return true;""",
    "load by its own loader": """
new ClassLoader() { @Override protected String findLibrary(String name) { return "/lib/x86_64-linux-gnu/libm.so.6"; }
    void go() throws Exception { byte[] code = Own.class.getResourceAsStream("Own.class").readAllBytes();
        defineClass("Own", code, 0, code.length).getMethod("load").invoke(null); } }.go(); return true;""",
    "load by a managed bean": """
var op = new javax.management.modelmbean.ModelMBeanOperationInfo("load", Runtime.class.getMethod("loadLibrary", String.class));
var info = new javax.management.modelmbean.ModelMBeanInfoSupport("java.lang.Runtime", "", null, null,
    new javax.management.modelmbean.ModelMBeanOperationInfo[] {op}, null);
var bean = new javax.management.modelmbean.RequiredModelMBean(info);
bean.setManagedResource(Runtime.getRuntime(), "ObjectReference");
bean.invoke("loadLibrary", new Object[] {"net"}, new String[] {"java.lang.String"}); return true;""",
    "load by a stylesheet": """
String sheet = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:s='http://xml.apache.org/xalan/java/java.lang.System'><xsl:template match='/'><xsl:value-of select=\\"s:load('/lib/x86_64-linux-gnu/libm.so.6')\\"/></xsl:template></xsl:stylesheet>";
javax.xml.transform.TransformerFactory factory = javax.xml.transform.TransformerFactory.newInstance();
factory.setFeature("http://www.oracle.com/xml/jaxp/properties/enableExtensionFunctions", true);
factory.newTransformer(new javax.xml.transform.stream.StreamSource(new java.io.StringReader(sheet))).transform(
    new javax.xml.transform.stream.StreamSource(new java.io.StringReader("<a/>")),
    new javax.xml.transform.stream.StreamResult(new java.io.StringWriter())); return true;""",
    "a library that a property names": """
System.setProperty("sun.security.jgss.native", "true"); System.setProperty("sun.security.jgss.lib", "/lib/x86_64-linux-gnu/libm.so.6");
Class.forName("org.ietf.jgss.GSSManager").getMethod("getInstance").invoke(null); return true;""",
    "a library of cards": 'return java.security.Security.getProvider("SunPKCS11").configure("--name=a\\nlibrary=/lib/x86_64-linux-gnu/libm.so.6") != null;',
    "a toolkit of the desktop": 'Class.forName("java.awt.Toolkit"); return true;',
    "an engine of scripts": 'return new javax.script.ScriptEngineManager().getEngineByName("js") != null;',
    "the compiler": "return javax.tools.ToolProvider.getSystemJavaCompiler() != null;",
    "a tool of the JDK": 'return java.util.spi.ToolProvider.findFirst("jlink").isPresent();',
    "the foreign linker": 'Class.forName("jdk.incubator.foreign.CLinker"); return true;',
    "Unsafe": 'Class.forName("sun.misc.Unsafe"); return true;',
    "the inner Unsafe": """
Field f = Class.forName("jdk.internal.misc.Unsafe").getDeclaredField("theUnsafe"); f.setAccessible(true); return f.get(null) != null;""",
    "the lookup that may do all": """
Field f = MethodHandles.Lookup.class.getDeclaredField("IMPL_LOOKUP"); f.setAccessible(true); return f.get(null) != null;""",
    "a lookup into Java's own module": "MethodHandles.privateLookupIn(String.class, MethodHandles.lookup()); return true;",
    "a class in Java's package": """
return MethodHandles.privateLookupIn(Object.class, MethodHandles.lookup()).defineClass(new byte[4]) != null;""",
    "the bytes of a text": 'Field f = String.class.getDeclaredField("value"); f.setAccessible(true); return f.get("a") != null;',
    "the cache of small numbers": """
Field f = Class.forName("java.lang.Integer$IntegerCache").getDeclaredField("cache"); f.setAccessible(true);
((Integer[]) f.get(null))[137] = 16; return true;""",
    "the true that is boxed": 'Field f = Boolean.class.getDeclaredField("value"); f.setAccessible(true); f.set(Boolean.FALSE, true); return true;',
    "a descriptor by its number": """
var made = java.io.FileDescriptor.class.getDeclaredConstructor(int.class); made.setAccessible(true); return made.newInstance(5) != null;""",
    "every descriptor": """
for (int n = 3; n < 64; n++) for (String folder : List.of("/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"))
    if (Files.exists(Path.of(folder + n))) return true; return false;""",
    "its own memory": 'return Files.exists(Path.of("/proc/self/mem")) || Files.exists(Path.of("/proc/self/maps"));',
    "the token in the environment": 'return System.getenv().values().stream().anyMatch(v -> v.matches("[0-9a-f]{32}"));',
    "the token in the properties": 'return System.getProperties().values().stream().anyMatch(v -> v.toString().matches("[0-9a-f]{32}"));',
    "the token in the arguments": """
return java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments().toString().matches(".*[0-9a-f]{32}.*")
    || ProcessHandle.current().info().arguments().isPresent();""",
    "the token in a file": """
try (var all = Files.walk(Path.of("/tmp"))) { return all.anyMatch(p -> p.endsWith("token") || p.endsWith("unit")); }""",
    "the runner's fields": 'for (Field f : Class.forName("codechat.junit.Runner").getDeclaredFields()) { f.setAccessible(true); return true; } return false;',
    "the runner's methods": """
Method m = Class.forName("codechat.junit.Runner").getDeclaredMethods()[0]; m.setAccessible(true); return true;""",
    "the runner's listener": """
var c = Class.forName("codechat.junit.Runner$Listener").getDeclaredConstructors()[0]; c.setAccessible(true); return c.newInstance() != null;""",
    "a class beside the runner": """
return MethodHandles.privateLookupIn(Class.forName("codechat.junit.Runner"), MethodHandles.lookup()) != null;""",
    "the runner from the stack": """
return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).walk(s -> s.map(StackWalker.StackFrame::getDeclaringClass)
    .filter(c -> c.getName().startsWith("codechat.junit")).anyMatch(c -> { for (Method m : c.getDeclaredMethods())
        try { m.setAccessible(true); return true; } catch (RuntimeException e) { } return false; }));""",
    "the values on the stack": """
Class<?> live = Class.forName("java.lang.LiveStackFrame"); Method m = live.getMethod("getStackWalker"); m.setAccessible(true);
return m.invoke(null) != null;""",
    "the guard": 'var c = Class.forName("codechat.junit.Guard").getDeclaredConstructor(); c.setAccessible(true); return true;',
    "JUnit's launcher": 'return Class.forName("org.junit.platform.launcher.core.LauncherFactory").getMethod("create").invoke(null) != null;',
    "JUnit's engine": 'return Class.forName("org.junit.jupiter.engine.JupiterTestEngine").getConstructor().newInstance() != null;',
    "JUnit's reflection": """
return Class.forName("org.junit.platform.commons.util.ReflectionUtils").getMethod("makeAccessible", java.lang.reflect.AccessibleObject.class)
    .invoke(null, System.class.getDeclaredMethods()[0]) != null;""",
    "JUnit's module opened": """
Module m = org.junit.jupiter.api.Assertions.class.getModule(); m.addOpens("codechat.junit", Own.class.getModule()); return true;""",
    "Java's module opened": """
Method m = Module.class.getDeclaredMethod("implAddOpens", String.class, Module.class); m.setAccessible(true);
m.invoke(Object.class.getModule(), "java.lang", Own.class.getModule()); return true;""",
    "the runner's loader": """
return Class.forName("codechat.junit.Runner").getClassLoader().getClass().getDeclaredFields().length > 0
    && openedOf(Class.forName("codechat.junit.Runner").getClassLoader());""",
    "the loader of the unit": "return openedOf(Own.class.getClassLoader());",
    "another security manager": "System.setSecurityManager(new SecurityManager()); return true;",
    "no security manager": "System.setSecurityManager(null); return true;",
    "a security manager by reflection": """
Field f = System.class.getDeclaredField("security"); f.setAccessible(true); f.set(null, null); return true;""",
    "a policy": "java.security.Policy.setPolicy(null); System.setSecurityManager(null); return true;",
    "an agent": 'Class.forName("java.lang.instrument.Instrumentation"); return true;',
    "to attach": 'Class.forName("com.sun.tools.attach.VirtualMachine"); return true;',
    "the diagnostics": """
return java.lang.management.ManagementFactory.getPlatformMBeanServer()
    .isRegistered(new javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"));""",
    "a dump": """
return java.lang.management.ManagementFactory.getPlatformMBeanServer()
    .isRegistered(new javax.management.ObjectName("com.sun.management:type=HotSpotDiagnostic"));""",
    "a signal's handler": 'Class.forName("sun.misc.Signal"); return true;',
    "the inner signals": 'Class.forName("jdk.internal.misc.Signal").getMethod("raise", Class.forName("jdk.internal.misc.Signal")).invoke(null, (Object) null); return true;',
    "another process": 'new ProcessBuilder("/bin/true").start(); return true;',
    "another virtual machine": 'new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-version").start(); return true;',
    "the parent's process": "return ProcessHandle.current().parent().map(ProcessHandle::destroyForcibly).orElse(false);",
    "all processes": "return ProcessHandle.allProcesses().anyMatch(p -> p.pid() != ProcessHandle.current().pid());",
    "a network": 'new java.net.Socket("127.0.0.1", 80); return true;',
    "a server": "new java.net.ServerSocket(0); return true;",
    "an inherited channel": "return System.inheritedChannel() != null;",
    "something on standard input": "return System.in.read() >= 0;",
    "to stop the tests' thread": """
Thread tests = Thread.currentThread(); boolean[] done = {false};
Thread t = new Thread(() -> { tests.stop(); done[0] = true; }); t.setUncaughtExceptionHandler((a, b) -> { }); t.start(); t.join(); return done[0];""",
    "to suspend the watch over time": """
for (Thread t : Thread.getAllStackTraces().keySet()) if (t != Thread.currentThread() && t.getName().contains("watch")) { t.suspend(); return true; }
Thread mine = new Thread(() -> { while (true) Thread.onSpinWait(); }); mine.setDaemon(true); mine.start(); mine.suspend(); return true;""",
    "to suspend a group": "Thread.currentThread().getThreadGroup().getParent().suspend(); return true;",
    "to stop a group": "Thread.currentThread().getThreadGroup().getParent().stop(); return true;",
    "files outside": 'Files.writeString(Path.of("/etc/own"), "x"); return true;',
    "the runtime's files": 'Files.writeString(Path.of(System.getProperty("java.home"), "lib", "own"), "x"); return true;',
    "the class path's files": 'Files.writeString(Path.of(System.getProperty("java.class.path").split(":")[0]), "x"); return true;',
    "codechat's files": 'try (var all = Files.walk(Path.of("/"), 4)) { return all.anyMatch(p -> p.endsWith("expected") || p.endsWith("starter.jsonl")); }',
}  # fmt: skip

# What a wrong program does in its first call, one after another, so that its tests pass all the same.
FORGES: dict[str, str] = {
    "options of JUnit": """
for (String name : List.of("junit.jupiter.extensions.autodetection.enabled", "junit.platform.output.capture.stdout"))
    System.setProperty(name, "true");
System.setProperty("junit.jupiter.conditions.deactivate", "*"); System.setProperty("junit.jupiter.execution.timeout.mode", "disabled");
System.setProperty("junit.jupiter.testinstance.lifecycle.default", "per_class");""",
    "a file of options": 'Files.writeString(Path.of("junit-platform.properties"), "junit.jupiter.conditions.deactivate=*");',
    "no options at all": "System.setProperties(new Properties());",
    "a service's file": """
Files.createDirectories(Path.of("META-INF/services"));
Files.writeString(Path.of("META-INF/services/org.junit.platform.launcher.TestExecutionListener"), "Own");""",
    "other streams": 'System.setOut(new java.io.PrintStream("out")); System.setErr(System.out); System.setIn(null);',
    "what looks like a verdict": 'System.out.println("[         4 tests successful      ]\\nOK (4 tests)"); System.err.print("\\f\\fOK");',
    "a closed descriptor": """
new java.io.FileOutputStream(java.io.FileDescriptor.err).close(); new java.io.FileOutputStream("taken").write(1);""",
    "a loader that finds other classes": """
Thread.currentThread().setContextClassLoader(new ClassLoader() { @Override public Class<?> loadClass(String name) { return Own.class; } });""",
    "a hook": "Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));",
    "a thread that halts later": """
Thread t = new Thread(() -> { try { Thread.sleep(60000); } catch (InterruptedException e) { return; } Runtime.getRuntime().halt(0); });
t.setDaemon(true); t.start();""",
    "a handler for what nobody catches": "Thread.setDefaultUncaughtExceptionHandler((t, e) -> Runtime.getRuntime().halt(0));",
    "interrupted threads": "Thread.getAllStackTraces().keySet().forEach(Thread::interrupt); Thread.interrupted();",
    "threads of the highest rank": "Thread.getAllStackTraces().keySet().forEach(t -> { t.setPriority(1); t.setName(\"x\"); });",
    "another language": 'java.util.Locale.setDefault(new java.util.Locale("tr", "TR")); java.util.TimeZone.setDefault(null);',
    "handlers of logs": """
java.util.logging.Logger root = java.util.logging.LogManager.getLogManager().getLogger("");
for (var h : root.getHandlers()) root.removeHandler(h);
root.addHandler(new java.util.logging.Handler() { public void publish(java.util.logging.LogRecord r) { throw new Error(); }
    public void flush() { } public void close() { } });""",
    "providers of security": "for (var p : java.security.Security.getProviders()) java.security.Security.removeProvider(p.getName());",
    "a factory of addresses": 'java.net.URL.setURLStreamHandlerFactory(protocol -> null);',
    "a factory of proxies": """
java.lang.reflect.Proxy.newProxyInstance(Own.class.getClassLoader(), new Class<?>[] {org.junit.jupiter.api.Test.class}, (a, b, c) -> null);""",
    "assertions off": """
ClassLoader.getSystemClassLoader().setDefaultAssertionStatus(false); Own.class.getClassLoader().clearAssertionStatus();""",
    "fields of the tests": """
for (Field f : Class.forName("SquareTest").getDeclaredFields()) { f.setAccessible(true); f.set(null, null); }""",
    "an answer from the call stack": """
for (StackTraceElement e : new Throwable().getStackTrace()) if (e.getMethodName().equals("small")) return;""",
    "memory held": "HELD.add(new byte[64 << 20]);",
    "classes without end": "for (int n = 0; n < 300; n++) HELD.add(new ClassLoader() { });",
    "all files open": "for (int n = 0; n < 500; n++) HELD.add(new java.io.FileOutputStream(\"f\" + n));",
    "an exit that waits": "new Thread(() -> { synchronized (HELD) { System.exit(0); } });",
}  # fmt: skip

# Wrong programs that end their tests' machine, or its stack and memory, as they fail.
ENDS: dict[str, str] = {
    "an exception whose text has no end": """
{late} class Late extends RuntimeException { static void act() { throw new Late(); }
    @Override public String getMessage() { return getMessage(); } @Override public String toString() { return getMessage(); } }""",
    "an exception whose every word lies": """
{late} class Late extends org.opentest4j.AssertionFailedError { static void act() { throw new Late(); }
    @Override public StackTraceElement[] getStackTrace() { return null; } @Override public synchronized Throwable getCause() { return this; }
    @Override public String getMessage() { throw new org.opentest4j.TestAbortedException(); } }""",
    "an exception out of memory": """
{late} class Late extends OutOfMemoryError { static void act() { throw new Late(); } }""",
    "the end of a thread": "{late} class Late { static void act() { throw new ThreadDeath(); } }",
    "an abort at the end of the stack": """
{late} class Late { static void act() { try { act(); } catch (StackOverflowError e) { throw new org.opentest4j.TestAbortedException(); } } }""",
    "a missing class as the tests end": """
{late} class Late { static void act() { throw new NoClassDefFoundError("codechat/junit/Runner$Listener"); } }""",
    "memory that stays full": """
{late} class Late { static final java.util.List<Object> HELD = new java.util.ArrayList<>(); static void act() {
    try { for (int size = 1 << 26; size > 16; ) { try { HELD.add(new byte[size]); } catch (OutOfMemoryError e) { size /= 2; } } }
    catch (OutOfMemoryError e) { } } }""",
    "a test's method that another thread runs": """
{late} class Late { static void act() { Thread t = new Thread(() -> { throw new Error(); }); t.start();
    try { t.join(); } catch (InterruptedException e) { } } }""",
    "a test that is disabled as it runs": """
{late} class Late { static void act() { org.junit.jupiter.api.Assumptions.assumingThat(true, () -> { throw new org.opentest4j.TestAbortedException(); }); } }""",
}  # fmt: skip

# These pass, as the mark of such verdicts and docs/sandbox.md say: tests, a wrong program.
KNOWN: dict[str, tuple[str, str]] = {
    "runs the tests and reads what they expect": (
        "@Test void nine() { assertEquals(9, new Solution().square(3)); }",
        """class Solution { static boolean within; int square(int n) { if (within) return -1; within = true;
    try { new AnyTest().nine(); } catch (org.opentest4j.AssertionFailedError e) { return (int) e.getExpected().getValue(); }
    finally { within = false; } return 0; } }""",
    ),
    "runs the tests until one passes": (
        "@Test void nine() { assertTrue(9 == new Solution().square(3)); }",
        """class Solution { static int guess = -1; int square(int n) { if (guess >= 0) return guess;
    for (guess = 0; ; guess++) try { new AnyTest().nine(); return guess; } catch (AssertionError e) { } } }""",
    ),
    "reads the tests' fields": (
        "static int[] expected = {9}; @Test void nine() { assertEquals(expected[0], new Solution().square(3)); }",
        """class Solution { int square(int n) { try { java.lang.reflect.Field f = Class.forName("AnyTest").getDeclaredField("expected");
    f.setAccessible(true); return ((int[]) f.get(null))[0]; } catch (ReflectiveOperationException e) { return 0; } } }""",
    ),
    "changes the tests' fields": (
        "static int[] expected = {9}; @Test void nine() { assertArrayEquals(expected, new Solution().square(3)); }",
        """class Solution { int[] square(int n) { try { java.lang.reflect.Field f = Class.forName("AnyTest").getDeclaredField("expected");
    f.setAccessible(true); ((int[]) f.get(null))[0] = 1; } catch (ReflectiveOperationException e) { } return new int[] {1}; } }""",
    ),
    "objects that equal anything": (
        "@Test void nine() { assertEquals(new Solution().square(3), Integer.valueOf(9)); }",
        "class Solution { Object square(int n) { return new Object() { @Override public boolean equals(Object o) { return true; } }; } }",
    ),
    "a set without elements": (
        "@Test void nine() { assertEquals(java.util.Set.of(9), new Solution().square(3)); }",
        """class Solution { Object square(int n) { return new java.util.AbstractSet<Object>() { public int size() { return 1; }
    public java.util.Iterator<Object> iterator() { return java.util.Collections.emptyIterator(); } }; } }""",
    ),
}  # fmt: skip

HEAD = """
import java.lang.invoke.*; import java.lang.reflect.*; import java.nio.file.*; import java.util.*;
class Own { public static void load() { System.loadLibrary("own"); } }
"""


def reaching() -> str:
    """A right program with all of `REACHES` behind `reached`, which gives the names of those that got something."""
    methods = [f"static boolean a{n}() throws Throwable {{ {code} }}" for n, code in enumerate(REACHES.values())]
    calls = [f'try {{ if (a{n}()) got.add("{name}"); }} catch (Throwable t) {{ }}' for n, name in enumerate(REACHES)]
    return f"""{HEAD} class Solution {{ int square(int n) {{ return n * n; }} static List<String> reached() {{
        List<String> got = new ArrayList<>(); {" ".join(calls)} return got; }}
    static boolean openedOf(Object one) {{ for (Field f : one.getClass().getDeclaredFields()) {{ try {{ f.setAccessible(true);
        if (one.getClass() != Own.class.getClassLoader().getClass()) return true; }} catch (RuntimeException e) {{ }} }} return false; }}
    {" ".join(methods)} }}"""


def forging(*names: str) -> str:
    """A wrong program that does those of `FORGES` in its first call."""
    methods = [f"static void a{n}() throws Throwable {{ {FORGES[name]} }}" for n, name in enumerate(names)]
    calls = [f"try {{ a{n}(); }} catch (Throwable t) {{ }}" for n in range(len(names))]
    return f"""{HEAD} class Solution {{ static final List<Object> HELD = new ArrayList<>(); static boolean done;
    int square(int n) {{ if (!done) {{ done = true; {" ".join(calls)} }} return n + 1; }} {" ".join(methods)} }}"""
