package codechat.junit;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Calls the function of one unit on every tuple of arguments and writes the results, as {@code drivers/__init__.py} tells.
 *
 * <p>The function is {@code CodechatCaller.call}, which was compiled with the program: its parameters have the types of
 * the task's signature.
 */
public final class Calls {
    private static final int LONGEST = 256 * 1024;
    private static final int DEEPEST = 190;
    private static final int PRINTED = 2048;
    private static final int SHOWN = 1000;
    private static final int FRAMES = 12;
    private static final BigInteger DIGIT = BigInteger.valueOf(32767);

    private final OutputStream channel = new FileOutputStream(FileDescriptor.out);
    private final Printed printed = new Printed();

    private Calls() {}

    /** Arguments: the file with the classes, the file with the arguments and, if the calls are timed, one more. */
    public static void main(String[] files) throws Exception {
        new Calls().run(files[0], files[1], files.length > 2);
    }

    private void run(String unit, String arguments, boolean timed) throws Exception {
        ClassLoader loader = new Runner.UnitLoader(Runner.readClasses(Runner.takeAway(unit)));
        ByteBuffer calls = ByteBuffer.wrap(Runner.takeAway(arguments)).order(ByteOrder.LITTLE_ENDIAN);
        Thread.currentThread().setContextClassLoader(loader);
        Guard.install();
        printed.stream.write('\f'); // what the virtual machine itself has to say is said
        PrintStream printing = new PrintStream(printed, true, StandardCharsets.UTF_8);
        System.setOut(printing);
        System.setErr(printing);
        try {
            Method function = null;
            for (Method each : Class.forName("CodechatCaller", true, loader).getDeclaredMethods()) {
                function = each.getName().equals("call") ? each : function;
            }
            function.setAccessible(true);
            send('L', new byte[0]);
            call(function, calls, timed);
            send('Z', new byte[0]);
        } catch (Throwable thrown) { // anything that the program throws is its own failure
            send('X', describe(thrown));
        }
        Runtime.getRuntime().halt(0); // threads of the program may be left, and hooks
    }

    private void call(Method function, ByteBuffer calls, boolean timed) throws Throwable {
        Type[] types = function.getGenericParameterTypes();
        calls.get();
        for (int left = calls.getInt(); left > 0; left--) {
            calls.get();
            Object[] given = new Object[calls.getInt()];
            for (int place = 0; place < given.length; place++) {
                given[place] = read(calls, types[place]);
            }
            long began = timed ? ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() : 0;
            byte[] data = encode(function.invoke(null, given));
            if (timed) {
                double took = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - began) / 1e9;
                send('T', ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(took).array());
            }
            send('V', data);
        }
    }

    private synchronized void send(char kind, byte[] payload) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(7 + payload.length).order(ByteOrder.LITTLE_ENDIAN);
        frame.put((byte) kind).putInt(payload.length).putShort((short) printed.kept).put(payload);
        channel.write(frame.array());
    }

    /** The next value as one of a type; for an {@code Object}, as the type that it has by itself. */
    private static Object read(ByteBuffer data, Type type) {
        char kind = (char) data.get();
        switch (kind) {
            case 'N': return raw(type) == Optional.class ? Optional.empty() : null;
            case 'T': return true;
            case 'F': return false;
            case 'i': return number(data.getInt(), type);
            case 'l': return large(data, type);
            case 'g': return raw(type) == float.class || type == Float.class ? (Object) (float) data.getDouble() : data.getDouble();
            case 'u': return text(data, type);
            case '{': return dictionary(data, type);
            default: return items(data, type);
        }
    }

    private static Class<?> raw(Type type) {
        return type instanceof Class<?> known ? known : type instanceof ParameterizedType made ? (Class<?>) made.getRawType() : Object.class;
    }

    private static Type inner(Type type, int place) {
        return type instanceof ParameterizedType made ? made.getActualTypeArguments()[place] : Object.class;
    }

    private static Object number(long value, Type type) {
        Class<?> wanted = raw(type) == Optional.class ? raw(inner(type, 0)) : raw(type);
        Object made;
        if (wanted == double.class || wanted == Double.class) {
            made = (double) value;
        } else if (wanted == float.class || wanted == Float.class) {
            made = (float) value;
        } else if (wanted == long.class || wanted == Long.class) {
            made = value;
        } else if (wanted == short.class || wanted == Short.class) {
            made = (short) value;
        } else if (wanted == byte.class || wanted == Byte.class) {
            made = (byte) value;
        } else if (wanted == BigInteger.class) {
            made = BigInteger.valueOf(value);
        } else {
            made = (int) value == value ? (Object) (int) value : (Object) value;
        }
        return raw(type) == Optional.class ? Optional.of(made) : made;
    }

    private static Object large(ByteBuffer data, Type type) {
        int count = data.getInt();
        BigInteger value = BigInteger.ZERO;
        for (int place = 0; place < Math.abs(count); place++) {
            value = value.or(BigInteger.valueOf(data.getShort()).shiftLeft(15 * place));
        }
        value = count < 0 ? value.negate() : value;
        Class<?> wanted = raw(type);
        if (wanted == double.class || wanted == Double.class) {
            return value.doubleValue();
        }
        return wanted == BigInteger.class ? value : number(value.longValueExact(), type);
    }

    private static Object text(ByteBuffer data, Type type) {
        byte[] bytes = new byte[data.getInt()];
        data.get(bytes);
        StringBuilder made = new StringBuilder();
        for (int at = 0; at < bytes.length; ) { // halves of code points too, which no decoder lets pass
            int first = bytes[at] & 255;
            int more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
            int point = more == 0 ? first : first & (63 >> more);
            for (at++; more > 0; more--) {
                point = point << 6 | bytes[at++] & 63;
            }
            made.appendCodePoint(point);
        }
        Class<?> wanted = raw(type);
        if (wanted == Optional.class) {
            return Optional.of(made.toString());
        }
        return wanted == char.class || wanted == Character.class ? (Object) made.charAt(0) : made.toString();
    }

    private static Object dictionary(ByteBuffer data, Type type) {
        Map<Object, Object> made = new LinkedHashMap<>();
        while (data.get(data.position()) != '0') {
            Object key = read(data, inner(type, 0));
            made.put(key, read(data, inner(type, 1)));
        }
        data.get();
        return made;
    }

    private static Object items(ByteBuffer data, Type type) {
        boolean set = data.get(data.position() - 1) == '<';
        int size = data.getInt();
        if (type instanceof GenericArrayType || raw(type).isArray()) {
            Type each = type instanceof GenericArrayType made ? made.getGenericComponentType() : raw(type).getComponentType();
            Object made = Array.newInstance(raw(each), size);
            for (int place = 0; place < size; place++) {
                Array.set(made, place, read(data, each));
            }
            return made;
        }
        Collection<Object> made = set ? new LinkedHashSet<>() : new ArrayList<>(size);
        for (int place = 0; place < size; place++) {
            made.add(read(data, inner(type, 0)));
        }
        return made;
    }

    /** A value is longer than what is compared. */
    private static final class TooLong extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private static byte[] encode(Object value) {
        try {
            Writer writer = new Writer();
            writer.write(value, 0);
            return writer.data.toByteArray();
        } catch (TooLong tooLong) {
            Writer writer = new Writer();
            writer.opaque("a value too long to be compared");
            return writer.data.toByteArray();
        }
    }

    /** Writes marshal's plain data. */
    private static final class Writer {
        final ByteArrayOutputStream data = new ByteArrayOutputStream();

        private void kind(char letter) {
            if (data.size() > LONGEST) {
                throw new TooLong();
            }
            data.write(letter);
        }

        private void little(long value, int bytes) {
            for (int place = 0; place < bytes; place++) {
                data.write((int) (value >> 8 * place));
            }
        }

        void write(Object value, int depth) {
            if (depth > DEEPEST) {
                opaque("a value nested too deeply");
            } else if (value == null) {
                kind('N');
            } else if (value instanceof Boolean known) {
                kind(known ? 'T' : 'F');
            } else if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
                kind('i');
                little(((Number) value).intValue(), 4);
            } else if (value instanceof Long || value instanceof BigInteger) {
                whole(value instanceof Long known ? BigInteger.valueOf(known) : (BigInteger) value);
            } else if (value instanceof Double || value instanceof Float) {
                kind('g');
                little(Double.doubleToRawLongBits(((Number) value).doubleValue()), 8);
            } else if (value instanceof CharSequence || value instanceof Character) {
                text(value.toString());
            } else {
                whole(value, depth + 1);
            }
        }

        private void whole(Object value, int depth) {
            if (value instanceof Optional<?> known) {
                write(known.orElse(null), depth);
            } else if (value instanceof OptionalInt known) {
                write(known.isPresent() ? known.getAsInt() : null, depth);
            } else if (value instanceof OptionalLong known) {
                write(known.isPresent() ? known.getAsLong() : null, depth);
            } else if (value instanceof OptionalDouble known) {
                write(known.isPresent() ? known.getAsDouble() : null, depth);
            } else if (value instanceof Map<?, ?> known) {
                kind('{');
                for (Map.Entry<?, ?> each : known.entrySet()) {
                    write(each.getKey(), depth);
                    write(each.getValue(), depth);
                }
                kind('0');
            } else if (value instanceof Set<?> || value instanceof List<?> || value.getClass().isArray()) {
                boolean array = value.getClass().isArray();
                Object[] items = array ? new Object[Array.getLength(value)] : ((Collection<?>) value).toArray();
                kind(value instanceof Set<?> ? '<' : '[');
                little(items.length, 4);
                for (int place = 0; place < items.length; place++) {
                    write(array ? Array.get(value, place) : items[place], depth);
                }
            } else {
                opaque("an object of " + value.getClass().getName());
            }
        }

        private void whole(BigInteger value) {
            int size = (value.abs().bitLength() + 14) / 15;
            if (size > LONGEST / 2) {
                throw new TooLong();
            }
            kind('l');
            little(value.signum() * size, 4);
            for (int place = 0; place < size; place++) {
                little(value.abs().shiftRight(15 * place).and(DIGIT).intValue(), 2);
            }
        }

        void text(String value) {
            if (value.length() > LONGEST) {
                throw new TooLong();
            }
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            value.codePoints().forEach(point -> {
                int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
                bytes.write(more == 0 ? point : (0xff00 >> more + 1 & 0xff) | point >> 6 * more);
                for (more--; more >= 0; more--) {
                    bytes.write(0x80 | point >> 6 * more & 63);
                }
            });
            kind('u');
            little(bytes.size(), 4);
            data.writeBytes(bytes.toByteArray());
        }

        void opaque(String name) {
            kind('(');
            little(3, 4);
            kind('.');
            text("opaque");
            text(name.substring(0, Math.min(200, name.length())));
        }
    }

    /** What an exception says: type, text, lines and kind. */
    private static byte[] describe(Throwable outer) {
        Throwable thrown = outer;
        while ((thrown instanceof InvocationTargetException || thrown instanceof ExceptionInInitializerError) && thrown.getCause() != null) {
            thrown = thrown.getCause();
        }
        String text = "(no text)";
        List<String> lines = new ArrayList<>();
        try {
            text = String.valueOf(thrown.getMessage());
            for (StackTraceElement each : thrown.getStackTrace()) {
                if (each.getModuleName() == null && lines.size() < FRAMES && !each.getClassName().equals("CodechatCaller")) {
                    lines.add(0, "line " + each.getLineNumber() + ", in " + each.getMethodName());
                }
            }
        } catch (Throwable its) { // its own getMessage may throw anything
            lines.clear();
        }
        Writer writer = new Writer();
        writer.kind('(');
        writer.little(4, 4);
        writer.text(thrown.getClass().getName());
        writer.text(text.substring(0, Math.min(SHOWN, text.length())));
        writer.write(lines, 0);
        writer.text(thrown instanceof OutOfMemoryError ? "memory" : "error");
        return writer.data.toByteArray();
    }

    /** Keeps the head of what the program prints, and drops the rest. */
    private static final class Printed extends OutputStream {
        private final OutputStream stream = new FileOutputStream(FileDescriptor.err);
        private int kept;

        @Override
        public void write(int value) throws IOException {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public synchronized void write(byte[] data, int from, int size) throws IOException {
            int more = Math.min(size, PRINTED - kept);
            stream.write(data, from, more);
            kept += more;
        }
    }
}
