"""The verb `siftlog run-all`: a matrix of runs, one table and one page of them all."""
