// Package passlive runs schedules of a branch with keypads against the agent's real programs: two agents as processes with their
// journals on a real disk, connected to a real broker over sockets. It kills and restarts them at any moment, cuts their
// network, and sets their clocks; hours pass because the clock of the machine and the time of the cloud are moved together. The
// same rules hold as in passsim, which simulates more schedules, and power cuts that lose data, without processes.
package passlive
