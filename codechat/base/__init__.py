"""What every room needs: configs, registries, records, errors, files and the values of the domain."""
