"""How things look: pure functions of what was read, and of the room they may fill."""
