"""The parts of a report: its data, differences of states in lines, sentences about surprises, and JUnit XML."""
