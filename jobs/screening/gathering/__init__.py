"""From stored answers to what each model decided; replies are read here alone."""
