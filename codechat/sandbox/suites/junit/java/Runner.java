package codechat.junit;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests of one unit, in a virtual machine of their own, and writes the token if all passed.
 *
 * <p>The token comes from a file that is gone before the program is loaded, and lies in a variable of this class's method,
 * which no program can reach: no descriptor, no file, no argument and no object that it can ask for has it.
 */
public final class Runner {
    static final int FAILED = 10;
    static final int NONE_RAN = 11;
    static final int SKIPPED = 12;
    static final int UNFINISHED = 13;
    private static final int SHOWN = 400;
    private static final int FRAMES = 8;

    private Runner() {}

    /** Arguments: the file with the token, the file with the classes, and the names of the test classes. */
    public static void main(String[] arguments) throws Exception {
        byte[] token = takeAway(arguments[0]);
        ClassLoader loader = new UnitLoader(readClasses(takeAway(arguments[1])));
        PrintStream errors = new PrintStream(new FileOutputStream(FileDescriptor.err), true, "UTF-8");
        Thread.currentThread().setContextClassLoader(loader);
        Listener listener = new Listener(loader);
        Guard.install();
        errors.print('\f'); // what the virtual machine itself has to say is said
        errors.flush();
        int status = FAILED;
        try {
            List<DiscoverySelector> selectors = new ArrayList<>();
            for (String name : List.of(arguments).subList(2, arguments.length)) {
                selectors.add(DiscoverySelectors.selectClass(Class.forName(name, false, loader)));
            }
            run(selectors, listener);
            status = listener.status();
        } catch (Throwable thrown) {
            listener.note("the tests", thrown);
        }
        errors.print("\n" + listener.said);
        if (status == 0) {
            errors.write(token);
        }
        errors.flush();
        Runtime.getRuntime().halt(status); // threads of the program may be left, and hooks
    }

    private static void run(List<DiscoverySelector> selectors, TestExecutionListener listener) {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectors)
                .enableImplicitConfigurationParameters(false) // a program can set system properties
                .build();
        LauncherConfig config = LauncherConfig.builder()
                .enableTestExecutionListenerAutoRegistration(false)
                .enablePostDiscoveryFilterAutoRegistration(false)
                .build();
        LauncherFactory.create(config).execute(request, listener);
    }

    static byte[] takeAway(String name) throws IOException {
        byte[] data = Files.readAllBytes(Path.of(name));
        Files.delete(Path.of(name));
        return data;
    }

    static Map<String, byte[]> readClasses(byte[] unit) throws IOException {
        Map<String, byte[]> classes = new HashMap<>();
        try (DataInputStream stream = new DataInputStream(new ByteArrayInputStream(unit))) {
            for (int left = stream.readInt(); left > 0; left--) {
                String className = new String(stream.readNBytes(stream.readInt()), StandardCharsets.UTF_8);
                classes.put(className, stream.readNBytes(stream.readInt()));
            }
        }
        return classes;
    }

    /** The classes of the unit, from memory: nothing that the program writes becomes a class or a service. */
    static final class UnitLoader extends ClassLoader {
        private final Map<String, byte[]> classes;

        UnitLoader(Map<String, byte[]> classes) {
            super(ClassLoader.getSystemClassLoader());
            this.classes = classes;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] code = classes.get(name);
            if (code == null) {
                throw new ClassNotFoundException(name);
            }
            return defineClass(name, code, 0, code.length);
        }
    }

    /**
     * Sees what was found end, and keeps the first failure in words.
     *
     * <p>JUnit goes on if a listener breaks, as it does where stack or memory end. So only what is known to have passed
     * counts, and all that was found must have.
     */
    private static final class Listener implements TestExecutionListener {
        private final StringBuilder said = new StringBuilder();
        private final Set<String> open = new HashSet<>();
        private final ClassLoader loader;
        private int passed;
        private int failed;
        private int skipped;

        Listener(ClassLoader loader) {
            this.loader = loader;
        }

        @Override
        public synchronized void testPlanExecutionStarted(TestPlan plan) {
            for (TestIdentifier root : plan.getRoots()) {
                open.add(root.getUniqueId());
                for (TestIdentifier each : plan.getDescendants(root)) {
                    open.add(each.getUniqueId());
                }
            }
        }

        @Override
        public synchronized void dynamicTestRegistered(TestIdentifier test) {
            open.add(test.getUniqueId());
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            Thread.currentThread().setContextClassLoader(loader); // JUnit looks for classes there, and a test may change it
        }

        @Override
        public synchronized void executionSkipped(TestIdentifier test, String reason) {
            skipped++;
        }

        @Override
        public synchronized void executionFinished(TestIdentifier test, TestExecutionResult result) {
            if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
                skipped++;
            } else if (result.getStatus() == TestExecutionResult.Status.FAILED) {
                note(test.getDisplayName(), result.getThrowable().orElse(null));
            } else if (open.remove(test.getUniqueId()) && test.isTest()) {
                passed++;
            }
        }

        synchronized int status() {
            if (failed > 0) {
                return FAILED;
            }
            if (skipped > 0) {
                return SKIPPED;
            }
            if (passed == 0) {
                return NONE_RAN;
            }
            return open.isEmpty() ? 0 : UNFINISHED;
        }

        synchronized void note(String test, Throwable thrown) {
            failed++;
            if (failed == 1) {
                said.append(test).append(": ").append(describe(thrown)).append('\n');
            }
        }
    }

    private static String describe(Throwable thrown) {
        if (thrown == null) {
            return "it fails";
        }
        StringBuilder lines = new StringBuilder(thrown.getClass().getName());
        try {
            String message = String.valueOf(thrown.getMessage());
            lines.append(": ").append(message, 0, Math.min(SHOWN, message.length()));
            int shown = 0;
            for (StackTraceElement frame : thrown.getStackTrace()) {
                if (frame.getModuleName() == null && shown++ < FRAMES) {
                    lines.append("\n  at ").append(frame.getMethodName()).append(", line ").append(frame.getLineNumber());
                }
            }
        } catch (Throwable its) { // its own getMessage may throw anything
            lines.append(" (no text)");
        }
        return lines.toString();
    }
}
