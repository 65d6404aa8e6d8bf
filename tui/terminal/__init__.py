"""What every form of the monitor needs of the terminal it is shown on."""
