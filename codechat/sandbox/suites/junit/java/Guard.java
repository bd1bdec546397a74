package codechat.junit;

import java.security.Permission;

/**
 * Refuses what would let a program out of Java's own rules: native libraries, which could read and write any memory, and
 * to stop or suspend threads, such as the one that watches over a test's time. No program can set another one.
 */
@SuppressWarnings("removal")
final class Guard extends SecurityManager {
    private static final String OWN = System.getProperty("java.home") + "/lib/lib";
    private static final int LAST = 23; // later ones have no security managers, and refuse the same by an option

    private Guard() {}

    static void install() {
        if (Runtime.version().feature() <= LAST) {
            System.setSecurityManager(new Guard());
        }
    }

    @Override
    public void checkPermission(Permission permission) {
        String name = permission.getName();
        if (permission instanceof RuntimePermission && (name.equals("setSecurityManager") || name.equals("stopThread"))) {
            throw new SecurityException("not for a program: " + name);
        }
    }

    @Override
    public void checkPermission(Permission permission, Object context) {
        checkPermission(permission);
    }

    /** The runtime's own classes load its own libraries, most of them without naming a folder. */
    @Override
    public void checkLink(String library) {
        Class<?> caller = null;
        for (Class<?> each : getClassContext()) { // frames of reflection are not among them
            if (each != Guard.class && each != Runtime.class && each != System.class) {
                caller = each;
                break;
            }
        }
        boolean own = library.indexOf('/') < 0 || (library.startsWith(OWN) && library.indexOf('/', OWN.length()) < 0);
        if (!own || caller == null || caller.getClassLoader() != null) {
            throw new SecurityException("not for a program: a native library");
        }
    }

    @Override
    public void checkAccess(Thread thread) {
        for (StackTraceElement each : new Throwable().getStackTrace()) {
            if (!each.getClassName().equals("java.lang.Thread") && !each.getClassName().equals(Guard.class.getName())) {
                return;
            }
            if (each.getMethodName().equals("suspend")) {
                throw new SecurityException("not for a program: to suspend a thread");
            }
        }
    }

    @Override
    public void checkAccess(ThreadGroup group) {}

    @Override
    public void checkPackageAccess(String name) {}
}
