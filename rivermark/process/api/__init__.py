"""What a process function is written with: state, timers, outputs, inputs."""
