"""A service that only lives, or does not even that: what the supervisor's tests start."""

import signal
import socket
import sys

if __name__ == "__main__":
    role, *words = sys.argv[1:]
    if role == "fails":
        sys.exit(3)
    # What a shell starts in the background inherits that interrupts are ignored.
    hears = signal.SIG_IGN if role == "deaf" else signal.default_int_handler
    signal.signal(signal.SIGINT, hears)
    if role == "listens":
        server = socket.socket(socket.AF_UNIX)
        server.bind(words[0])
        server.listen()
    signal.pause()
