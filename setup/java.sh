#!/usr/bin/env bash
# Java 17 or later, as Spark finds it: JAVA_HOME first, then the PATH.
#   java.sh                    succeeds, or says in one sentence what to install
#   java.sh --install-command  prints the command that installs Java here
set -euo pipefail

needed=17

install_command() {
    local sudo=""
    [ "$(id -u)" -eq 0 ] || sudo="sudo "
    if command -v apt-get >/dev/null; then
        # Newer Debian releases carry 21 only.
        local package=openjdk-17-jre-headless
        if ! apt-cache show "$package" >/dev/null 2>&1 &&
            apt-cache show openjdk-21-jre-headless >/dev/null 2>&1; then
            package=openjdk-21-jre-headless
        fi
        echo "${sudo}apt-get install -y $package"
    elif command -v dnf >/dev/null; then
        echo "${sudo}dnf install -y java-17-openjdk-headless"
    elif command -v brew >/dev/null; then
        echo "brew install openjdk@17 && export JAVA_HOME=\"\$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home\""
    else
        echo "your system's package manager, with OpenJDK 17 (runtime, headless is enough)"
    fi
}

if [ "${1:-}" = --install-command ]; then
    install_command
    exit 0
fi

if [ -n "${JAVA_HOME:-}" ]; then
    java="$JAVA_HOME/bin/java"
    place="in JAVA_HOME ($JAVA_HOME)"
else
    java=java
    place="on the PATH"
fi

# First line of interest: openjdk version "17.0.15" 2025-04-15, or "1.8.0_392" before Java 9.
version="$("$java" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p' | head -n 1 || true)"
major="${version#1.}"
major="${major%%[!0-9]*}"

if [ -z "$major" ]; then
    echo "rivermark needs Java $needed or later and found none $place: install it with: $(install_command)" >&2
    exit 1
fi
if [ "$major" -lt "$needed" ]; then
    echo "rivermark needs Java $needed or later and found $version $place: install it with: $(install_command)" >&2
    exit 1
fi
