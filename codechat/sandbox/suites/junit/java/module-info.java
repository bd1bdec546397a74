/** JUnit and the runner of its tests. Only what tests are written with is visible to programs, even by reflection. */
module codechat.junit {
    requires java.logging;
    requires java.management;

    exports junit.framework;
    exports org.junit.jupiter.api;
    exports org.junit.jupiter.api.condition;
    exports org.junit.jupiter.api.extension;
    exports org.junit.jupiter.api.function;
    exports org.junit.jupiter.api.io;
    exports org.junit.jupiter.api.parallel;
    exports org.junit.jupiter.params;
    exports org.junit.jupiter.params.aggregator;
    exports org.junit.jupiter.params.converter;
    exports org.junit.jupiter.params.provider;
    exports org.opentest4j;

    uses org.junit.platform.engine.TestEngine;
    uses org.junit.platform.launcher.LauncherDiscoveryListener;
    uses org.junit.platform.launcher.LauncherSessionListener;
    uses org.junit.platform.launcher.PostDiscoveryFilter;
    uses org.junit.platform.launcher.TestExecutionListener;

    provides org.junit.platform.engine.TestEngine with
            org.junit.jupiter.engine.JupiterTestEngine;
}
