"""What a job would take, told before any call is made."""
