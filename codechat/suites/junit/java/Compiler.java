package codechat.compiler;

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.ImportTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.Trees;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Compiles programs with their tests, one request after another: a trusted process that runs nothing of them.
 *
 * <p>A request is a program, its tests, and the names of types that the program may declare in any case. The answer is a whole: its size, the kind of result and, if it is compiled,
 * the names of the test classes and all classes; else a message. Every text and class has its size before it.
 */
public final class Compiler {
    /** The kinds of results, in the order in which the other side knows them. */
    private enum Kind { COMPILED, PROGRAM_DOES_NOT_PARSE, PROGRAM_FAILS, TESTS_DO_NOT_FIT, TESTS_DO_NOT_PARSE, GIVES_UP, SHADOWS }

    private static final long STACK = 64L << 20; // sources may nest deeply
    private static final int SHOWN = 3;
    private static final int LONGEST = 400;

    private final JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
    private final StandardJavaFileManager files =
            javac.getStandardFileManager(null, Locale.ROOT, StandardCharsets.UTF_8);
    private final List<String> options;

    private Compiler(List<String> options) {
        this.options = options;
    }

    /** Arguments: the compiler's options. */
    public static void main(String[] options) throws InterruptedException {
        OutputStream answers = System.out;
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        Compiler compiler = new Compiler(List.of(options));
        Thread server = new Thread(null, () -> compiler.serve(answers), "compiler", STACK);
        server.start();
        server.join();
    }

    private void serve(OutputStream answers) {
        try (DataInputStream requests = new DataInputStream(System.in);
                DataOutputStream stream = new DataOutputStream(answers)) {
            while (true) {
                String program = readText(requests);
                String tests = readText(requests);
                Set<String> declares = new HashSet<>(List.of(readText(requests).split(" ")));
                ByteArrayOutputStream answer = new ByteArrayOutputStream();
                answer(program, tests, declares, new DataOutputStream(answer));
                stream.writeInt(answer.size());
                answer.writeTo(stream);
                stream.flush();
            }
        } catch (IOException end) { // the other side has hung up
            return;
        }
    }

    private void answer(String program, String tests, Set<String> declares, DataOutputStream answer) throws IOException {
        try {
            Map<String, byte[]> classes = new LinkedHashMap<>();
            List<String> testClasses = compile(program, tests, declares, classes);
            answer.writeByte(Kind.COMPILED.ordinal());
            write(answer, String.join(" ", testClasses));
            answer.writeInt(classes.size());
            for (Map.Entry<String, byte[]> each : classes.entrySet()) {
                write(answer, each.getKey());
                write(answer, each.getValue());
            }
        } catch (Refused refused) {
            answer.writeByte(refused.kind.ordinal());
            write(answer, refused.getMessage());
        } catch (StackOverflowError | OutOfMemoryError | RuntimeException thrown) {
            answer.writeByte(Kind.GIVES_UP.ordinal());
            write(answer, thrown.getClass().getName());
        }
    }

    /** The names of the test classes; all classes go into {@code classes}, by name. */
    private List<String> compile(String program, String tests, Set<String> declares, Map<String, byte[]> classes)
            throws IOException, Refused {
        Parsed solution = parse(program, Kind.PROGRAM_DOES_NOT_PARSE);
        Parsed checks = parse(tests, Kind.TESTS_DO_NOT_PARSE);
        refuseShadows(solution, checks, declares);
        // The imports of the tests stand on the program's first line, so that its lines keep their numbers.
        String first = checks.imports + solution.body(solution.packageStart, solution.packageEnd) + "\n";
        String unit = first + checks.body(0, checks.headEnd);
        Found found = new Found();
        Kept kept = new Kept(files, classes);
        if (!task(unit, found, kept).call()) {
            long lines = first.lines().count();
            boolean own = found.errors.stream().anyMatch(each -> each.getLineNumber() <= lines);
            throw new Refused(own ? Kind.PROGRAM_FAILS : Kind.TESTS_DO_NOT_FIT, found.describe(own ? 0 : lines));
        }
        return checks.types;
    }

    private JavacTask task(String source, Found found, JavaFileManager manager) {
        PrintWriter nothing = new PrintWriter(OutputStream.nullOutputStream());
        return (JavacTask) javac.getTask(nothing, manager, found, options, null, List.of(new Source(source)));
    }

    /** What a source holds on top; raises if it does not parse. */
    private Parsed parse(String source, Kind otherwise) throws IOException, Refused {
        Found found = new Found();
        JavacTask task = task(source, found, files);
        CompilationUnitTree unit = task.parse().iterator().next();
        if (!found.errors.isEmpty()) {
            throw new Refused(otherwise, found.describe(0));
        }
        return new Parsed(task, unit, source);
    }

    /**
     * Refuses a program with a type of a name that its tests mean to take from a library: the tests would use the
     * program's own assertions, say.
     */
    private void refuseShadows(Parsed program, Parsed tests, Set<String> declares) throws Refused {
        for (String name : program.types) {
            for (String library : tests.libraries) {
                if (!declares.contains(name) && tests.names(name) && tests.task.getElements().getTypeElement(library + "." + name) != null) {
                    throw new Refused(Kind.SHADOWS, name + " of " + library);
                }
            }
        }
    }

    private static String readText(DataInputStream stream) throws IOException {
        int size = stream.readInt();
        return new String(stream.readNBytes(size), StandardCharsets.UTF_8);
    }

    private static void write(DataOutputStream stream, String text) throws IOException {
        write(stream, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void write(DataOutputStream stream, byte[] data) throws IOException {
        stream.writeInt(data.length);
        stream.write(data);
    }

    /** A source and its top: where the package's name and the imports are, and the names of the types. */
    private static final class Parsed {
        final JavacTask task;
        final String source;
        final String imports;
        final List<String> libraries = new ArrayList<>(List.of("java.lang"));
        final List<String> types = new ArrayList<>();
        final int packageStart;
        final int packageEnd;
        final int headEnd;

        Parsed(JavacTask task, CompilationUnitTree unit, String source) {
            this.task = task;
            this.source = source;
            SourcePositions at = Trees.instance(task).getSourcePositions();
            packageStart = unit.getPackage() == null ? 0 : (int) at.getStartPosition(unit, unit.getPackage());
            packageEnd = unit.getPackage() == null ? 0 : (int) at.getEndPosition(unit, unit.getPackage());
            int end = packageEnd;
            StringBuilder written = new StringBuilder();
            for (ImportTree each : unit.getImports()) {
                String name = each.getQualifiedIdentifier().toString();
                written.append("import ").append(each.isStatic() ? "static " : "").append(name).append("; ");
                if (name.endsWith(".*") && !each.isStatic()) {
                    libraries.add(name.substring(0, name.length() - 2));
                }
                end = Math.max(end, (int) at.getEndPosition(unit, each));
            }
            imports = written.toString();
            headEnd = end;
            for (Tree each : unit.getTypeDecls()) {
                if (each instanceof ClassTree type) {
                    types.add(type.getSimpleName().toString());
                }
            }
        }

        /** The source without the part from {@code start} to {@code end}, whose line ends stay. */
        String body(int start, int end) {
            return source.substring(0, start) + source.substring(start, end).replaceAll("[^\n]", "")
                    + source.substring(end);
        }

        boolean names(String type) {
            return Pattern.compile("(?<![\\w$.])" + Pattern.quote(type) + "(?![\\w$])").matcher(source).find();
        }
    }

    /** Why a unit is not compiled. */
    private static final class Refused extends Exception {
        private static final long serialVersionUID = 1L;
        final transient Kind kind;

        Refused(Kind kind, String message) {
            super(message, null, false, false);
            this.kind = kind;
        }
    }

    /** The compiler's messages. */
    private static final class Found implements DiagnosticListener<JavaFileObject> {
        final List<Diagnostic<? extends JavaFileObject>> errors = new ArrayList<>();

        @Override
        public void report(Diagnostic<? extends JavaFileObject> diagnostic) {
            if (diagnostic.getKind() == Diagnostic.Kind.ERROR) {
                errors.add(diagnostic);
            }
        }

        /** The first errors, each with its line, counted after {@code before} ones. */
        String describe(long before) {
            StringBuilder text = new StringBuilder();
            errors.stream().limit(SHOWN).forEach(each -> {
                String message = each.getMessage(Locale.ROOT).replaceAll("\\s+", " ");
                text.append("line ").append(each.getLineNumber() - before).append(": ");
                text.append(message, 0, Math.min(LONGEST, message.length())).append('\n');
            });
            return text.toString();
        }
    }

    /** One source in memory. It may hold public types of any name. */
    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String text) {
            super(URI.create("string:///Unit.java"), JavaFileObject.Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }

        @Override
        public boolean isNameCompatible(String simpleName, JavaFileObject.Kind kind) {
            return true;
        }
    }

    /** Keeps the compiled classes in memory. */
    private static final class Kept extends ForwardingJavaFileManager<StandardJavaFileManager> {
        private final Map<String, byte[]> classes;

        Kept(StandardJavaFileManager files, Map<String, byte[]> classes) {
            super(files);
            this.classes = classes;
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String className, JavaFileObject.Kind kind, FileObject sibling) {
            URI place = URI.create("memory:///" + classes.size() + ".class");
            return new SimpleJavaFileObject(place, kind) {
                @Override
                public OutputStream openOutputStream() {
                    return new ByteArrayOutputStream() {
                        @Override
                        public void close() {
                            classes.put(className, toByteArray());
                        }
                    };
                }
            };
        }
    }
}
