"""The board: every enabled target is in exactly one place (due, urgent, in flight, parked, held). Moves are single Lua
scripts in `lua/`; every other Redis structure belongs to `state/cluster`."""
