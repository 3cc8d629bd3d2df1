"""Built-in datasets: a plugin like any third party's."""
