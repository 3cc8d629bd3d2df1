"""What a method is given: problem, protocol, graph, features that are learned from text."""
