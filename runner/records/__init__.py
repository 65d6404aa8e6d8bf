"""What is made of a run's log: scorings, exports, and logs of work made elsewhere."""
