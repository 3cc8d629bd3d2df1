"""What a result depends on: data, files, versions of the code, the machine."""
