"""What is made of labels: sessions, draws, gold values and agreement."""
