"""Terminal support shared by all forms of the monitor."""
