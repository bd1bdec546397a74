package codechat.junit;

import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests of one unit, in a virtual machine of their own, and writes the token if all passed.
 *
 * <p>The token lies in a file that is unlinked before the program is loaded, and is read only once every test has
 * passed: no program finds it in memory, in a file or in the arguments.
 */
public final class Runner {
    static final int FAILED = 10;
    static final int NONE_RAN = 11;
    static final int SKIPPED = 12;
    private static final int SHOWN = 400;
    private static final int FRAMES = 8;

    private Runner() {}

    /** Arguments: the file with the token, the file with the classes, and the names of the test classes. */
    public static void main(String[] arguments) throws Exception {
        FileInputStream token = takeAway(arguments[0]);
        ClassLoader loader = new UnitLoader(readClasses(arguments[1]));
        PrintStream errors = new PrintStream(new FileOutputStream(FileDescriptor.err), true, "UTF-8");
        Thread.currentThread().setContextClassLoader(loader);
        Listener listener = new Listener();
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
            errors.write(token.readAllBytes());
        }
        errors.flush();
        Runtime.getRuntime().halt(status); // threads of the program may be left, and hooks
    }

    private static void run(List<DiscoverySelector> selectors, TestExecutionListener listener) {
        LauncherDiscoveryRequest request =
                LauncherDiscoveryRequestBuilder.request().selectors(selectors).build();
        LauncherConfig config = LauncherConfig.builder()
                .enableTestExecutionListenerAutoRegistration(false)
                .enablePostDiscoveryFilterAutoRegistration(false)
                .build();
        LauncherFactory.create(config).execute(request, listener);
    }

    private static FileInputStream takeAway(String name) throws IOException {
        FileInputStream stream = new FileInputStream(name);
        Files.delete(Path.of(name));
        return stream;
    }

    private static Map<String, byte[]> readClasses(String name) throws IOException {
        Map<String, byte[]> classes = new HashMap<>();
        try (DataInputStream stream = new DataInputStream(takeAway(name))) {
            for (int left = stream.readInt(); left > 0; left--) {
                String className = new String(stream.readNBytes(stream.readInt()), StandardCharsets.UTF_8);
                classes.put(className, stream.readNBytes(stream.readInt()));
            }
        }
        return classes;
    }

    /** The classes of the unit, from memory: nothing that the program writes becomes a class or a service. */
    private static final class UnitLoader extends ClassLoader {
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

    /** Counts what ran, and keeps the first failures in words. */
    private static final class Listener implements TestExecutionListener {
        private final StringBuilder said = new StringBuilder();
        private int passed;
        private int failed;
        private int skipped;

        @Override
        public synchronized void executionSkipped(TestIdentifier test, String reason) {
            skipped++;
        }

        @Override
        public synchronized void executionFinished(TestIdentifier test, TestExecutionResult result) {
            switch (result.getStatus()) {
                case SUCCESSFUL -> passed += test.isTest() ? 1 : 0;
                case ABORTED -> skipped++;
                default -> note(test.getDisplayName(), result.getThrowable().orElse(null));
            }
        }

        synchronized int status() {
            if (failed > 0) {
                return FAILED;
            }
            if (skipped > 0) {
                return SKIPPED;
            }
            return passed > 0 ? 0 : NONE_RAN;
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
