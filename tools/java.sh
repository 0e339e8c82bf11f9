#!/usr/bin/env bash
# Makes sure that a Java which Spark 4 can use (17 or newer) is there: says so if it is, installs a headless one with
# apt if that is possible without asking for a password, and otherwise says what to do.
# Only what runs Spark needs it.
set -euo pipefail

oldest=17
packages="openjdk-17-jre-headless openjdk-21-jre-headless"

# Spark prefers JAVA_HOME to the path, so the same order here.
java_command() {
    if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else command -v java || true; fi
}

# "17" from `openjdk version "17.0.12"`, "8" from `java version "1.8.0_392"`, nothing if it does not run.
java_major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1 || true
}

usable_java() {
    local command major
    command=$(java_command)
    [ -n "$command" ] || return 1
    major=$(java_major "$command")
    [ -n "$major" ] && [ "$major" -ge "$oldest" ] || return 1
    echo "Java $major: $command"
}

give_up() {
    {
        echo "error: $1"
        echo "       Spark needs Java $oldest or newer. Install one and run this again:"
        echo "         Debian, Ubuntu: apt-get install openjdk-17-jre-headless   (or openjdk-21-jre-headless), as root"
        echo "         elsewhere:      any OpenJDK $oldest or 21; set JAVA_HOME to its folder if \`java\` is another one"
    } >&2
    exit 1
}

if usable_java; then exit 0; fi

if [ -n "${JAVA_HOME:-}" ]; then
    give_up "JAVA_HOME is set to $JAVA_HOME, which holds no Java $oldest or newer."
fi
command -v apt-get >/dev/null || give_up "no suitable \`java\` found, and no apt-get to install one with."
if [ "$(id -u)" -eq 0 ]; then
    as_root=(env)
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n env)
else
    give_up "no suitable \`java\` found, and installing one needs root."
fi

echo "No Java $oldest or newer found: installing one with apt-get"
"${as_root[@]}" apt-get update -qq || give_up "\`apt-get update\` failed."
for package in $packages; do
    # Not `apt-cache show`: that also succeeds for packages that are only mentioned somewhere.
    if apt-cache policy "$package" | grep -q 'Candidate: [0-9]'; then
        "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
            || give_up "\`apt-get install $package\` failed."
        usable_java || give_up "$package is installed, but \`java\` is still another one."
        exit 0
    fi
done
give_up "apt-get offers none of: $packages."
