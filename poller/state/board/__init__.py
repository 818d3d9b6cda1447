"""The board: every enabled target is in exactly one place (due, urgent, in flight, parked or held).

Each move is one Lua script of `lua/`. All other Redis structures belong to `state/cluster`.
"""
