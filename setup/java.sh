#!/usr/bin/env bash
# Java 17 or later, as Spark finds it: JAVA_HOME first, then the PATH.
#   java.sh                   succeeds, or says in one sentence what to install and how
#   java.sh --debian-package  prints the name of the package to install on Debian and its kin
set -euo pipefail

needed=17

debian_package() {
    # Later Debian releases carry 21 and no 17.
    if ! apt-cache show openjdk-17-jre-headless >/dev/null 2>&1 &&
        apt-cache show openjdk-21-jre-headless >/dev/null 2>&1; then
        echo openjdk-21-jre-headless
    else
        echo openjdk-17-jre-headless
    fi
}

install_command() {
    local sudo=""
    [ "$(id -u)" -eq 0 ] || sudo="sudo "
    if command -v apt-get >/dev/null; then
        echo "${sudo}apt-get install $(debian_package)"
    elif command -v dnf >/dev/null; then
        echo "${sudo}dnf install java-17-openjdk-headless"
    elif command -v brew >/dev/null; then
        # Homebrew puts it on no PATH of its own accord.
        echo 'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home"'
    else
        echo "your package manager (OpenJDK 17, the headless runtime is enough)"
    fi
}

if [ "${1:-}" = --debian-package ]; then
    debian_package
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
