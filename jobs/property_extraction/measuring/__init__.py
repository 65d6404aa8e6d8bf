"""What the answers come to: pairs, counts, rates, intervals."""
