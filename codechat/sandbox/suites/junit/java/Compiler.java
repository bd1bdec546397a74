package codechat.compiler;

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.IdentifierTree;
import com.sun.source.tree.ImportTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
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
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
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
 * <p>A request is a program, its tests, and the names of types that the program may declare in any case. Each is a
 * source of its own, so that nothing in one text reaches into the other. The answer is a whole: its size, the kind of
 * result and, if it is compiled, the names of the test classes and all classes; else a message. Every text and class has
 * its size before it.
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
        // Imports of the other source stand on the first line, so that lines keep their numbers.
        Source first = new Source("Program", checks.importsAsText() + solution.withoutPackage());
        Source second = new Source("Tests", checks.lacking(solution) + checks.withoutPackage());
        Found found = new Found();
        Kept kept = new Kept(files, classes);
        if (!task(found, kept, first, second).call()) {
            for (Source each : List.of(first, second)) {
                if (!found.of(each).isEmpty()) {
                    throw new Refused(each == first ? Kind.PROGRAM_FAILS : Kind.TESTS_DO_NOT_FIT, describe(found.of(each)));
                }
            }
            // So javac ends when it runs out of stack or memory: that is no error of either source.
            throw new Refused(Kind.GIVES_UP, "the compiler fails, and names no error of the source");
        }
        if (!kept.isWhole(Map.of(first.getName(), solution.types, second.getName(), checks.types))) {
            throw new Refused(Kind.PROGRAM_FAILS, "the compiler makes other types of it than its text declares");
        }
        return checks.types;
    }

    private JavacTask task(Found found, JavaFileManager manager, Source... sources) {
        PrintWriter nothing = new PrintWriter(OutputStream.nullOutputStream());
        return (JavacTask) javac.getTask(nothing, manager, found, options, null, List.of(sources));
    }

    /** What a source holds on top; raises if it does not parse. */
    private Parsed parse(String source, Kind otherwise) throws IOException, Refused {
        Found found = new Found();
        JavacTask task = task(found, files, new Source("Source", source));
        CompilationUnitTree unit = task.parse().iterator().next();
        if (!found.errors.isEmpty()) {
            throw new Refused(otherwise, describe(found.errors));
        }
        return new Parsed(task, unit, source);
    }

    /**
     * Refuses a program with a type of a name that its tests mean to take from a library, or of a package: the tests
     * would use the program's own assertions, say.
     */
    private void refuseShadows(Parsed program, Parsed tests, Set<String> declares) throws Refused {
        Set<String> packages = ModuleLayer.boot().modules().stream().flatMap(each -> each.getPackages().stream())
                .map(each -> each.split("\\.")[0]).collect(Collectors.toSet());
        for (Import each : tests.imports) {
            packages.add(each.owner.split("\\.")[0]);
        }
        for (String name : program.types) {
            if (packages.contains(name)) {
                throw new Refused(Kind.SHADOWS, "the package " + name);
            }
            for (String library : tests.libraries()) {
                if (!declares.contains(name) && tests.names.contains(name) && tests.type(library + "." + name) != null) {
                    throw new Refused(Kind.SHADOWS, name + " of " + library);
                }
            }
        }
    }

    /** The first errors, each with its line. */
    private static String describe(List<Diagnostic<? extends JavaFileObject>> errors) {
        StringBuilder text = new StringBuilder();
        errors.stream().limit(SHOWN).forEach(each -> {
            String message = each.getMessage(Locale.ROOT).replaceAll("\\s+", " ");
            text.append("line ").append(each.getLineNumber()).append(": ");
            text.append(message, 0, Math.min(LONGEST, message.length())).append('\n');
        });
        return text.toString();
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

    /** An import of {@code owner}'s {@code member}, which is {@code *} for all. */
    private record Import(boolean isStatic, String owner, String member) {
        @Override
        public String toString() {
            return "import " + (isStatic ? "static " : "") + owner + "." + member + "; ";
        }
    }

    /** A source: its imports, the types that it declares, and every name in it that stands first or alone. */
    private static final class Parsed {
        final JavacTask task;
        final String source;
        final List<Import> imports = new ArrayList<>();
        final List<String> types = new ArrayList<>();
        final Set<String> names = new TreeSet<>();
        final int packageStart;
        final int packageEnd;

        Parsed(JavacTask task, CompilationUnitTree unit, String source) {
            this.task = task;
            this.source = source;
            SourcePositions at = Trees.instance(task).getSourcePositions();
            packageStart = unit.getPackage() == null ? 0 : (int) at.getStartPosition(unit, unit.getPackage());
            packageEnd = unit.getPackage() == null ? 0 : (int) at.getEndPosition(unit, unit.getPackage());
            for (ImportTree each : unit.getImports()) {
                String name = each.getQualifiedIdentifier().toString();
                int dot = name.lastIndexOf('.');
                imports.add(new Import(each.isStatic(), name.substring(0, dot), name.substring(dot + 1)));
            }
            for (Tree each : unit.getTypeDecls()) {
                if (each instanceof ClassTree type) {
                    types.add(type.getSimpleName().toString());
                }
                new TreeScanner<Void, Void>() {
                    @Override
                    public Void visitIdentifier(IdentifierTree node, Void nothing) {
                        names.add(node.getName().toString());
                        return null;
                    }
                }.scan(each, null);
            }
        }

        /** The source without its package; line ends stay. */
        String withoutPackage() {
            return source.substring(0, packageStart)
                    + source.substring(packageStart, packageEnd).replaceAll("[^\n]", "") + source.substring(packageEnd);
        }

        String importsAsText() {
            return imports.stream().map(Import::toString).collect(Collectors.joining());
        }

        /** Whose types these are without being named in an import. */
        List<String> libraries() {
            List<String> found = new ArrayList<>(List.of("java.lang"));
            imports.stream().filter(each -> each.member.equals("*")).forEach(each -> found.add(each.owner));
            return found;
        }

        /** Imports by another source of names that this one uses, and that its own imports do not give. */
        String lacking(Parsed other) {
            StringBuilder text = new StringBuilder();
            for (String name : names) {
                List<Import> found = other.imports.stream().filter(each -> gives(each, name)).toList();
                if (found.isEmpty() || types.contains(name) || other.types.contains(name)
                        || gives(new Import(false, "java.lang", "*"), name)
                        || imports.stream().anyMatch(each -> gives(each, name))) {
                    continue;
                }
                // as in any source, an import of one name goes before those of all
                boolean alone = found.stream().anyMatch(each -> each.member.equals(name));
                found.stream().filter(each -> each.member.equals(name) == alone)
                        .forEach(each -> text.append(new Import(each.isStatic, each.owner, name)));
            }
            return text.toString();
        }

        /** Whether an import gives a name. */
        boolean gives(Import each, String name) {
            if (!each.member.equals("*")) {
                return each.member.equals(name);
            }
            TypeElement owner = each.isStatic ? type(each.owner) : null;
            TypeElement found = each.isStatic ? null : type(each.owner + "." + name);
            return owner == null
                    ? found != null && found.getModifiers().contains(Modifier.PUBLIC)
                    : task.getElements().getAllMembers(owner).stream().anyMatch(member ->
                            member.getSimpleName().contentEquals(name) && member.getModifiers().contains(Modifier.STATIC));
        }

        TypeElement type(String name) {
            return task.getElements().getTypeElement(name);
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

        /** The errors in a source. */
        List<Diagnostic<? extends JavaFileObject>> of(Source source) {
            return errors.stream()
                    .filter(each -> each.getSource() != null && each.getSource().getName().equals(source.getName()))
                    .toList();
        }
    }

    /** One source in memory. It may hold public types of any name. */
    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String name, String text) {
            super(URI.create("string:///" + name + ".java"), JavaFileObject.Kind.SOURCE);
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
        private final Map<String, String> sources = new HashMap<>();
        private boolean twice;

        Kept(StandardJavaFileManager files, Map<String, byte[]> classes) {
            super(files);
            this.classes = classes;
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String className, JavaFileObject.Kind kind, FileObject sibling) {
            URI place = URI.create("memory:///" + classes.size() + ".class");
            twice |= sources.put(className, sibling.getName()) != null;
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

        /** Whether every source gave classes of the types that it declares, all of them, and each one once. */
        boolean isWhole(Map<String, List<String>> types) {
            return !twice
                    && types.values().stream().allMatch(classes.keySet()::containsAll)
                    && sources.entrySet().stream().allMatch(made -> types.get(made.getValue()).stream().anyMatch(type ->
                            made.getKey().equals(type) || made.getKey().startsWith(type + "$")));
        }
    }
}
