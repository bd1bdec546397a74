"""What several tests share: benches, made-up input, a browser."""
