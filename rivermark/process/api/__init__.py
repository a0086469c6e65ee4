"""The API of process functions: state, timers, outputs, inputs."""
