"""How an answer is called, one module a chapter. Holds no answers: a student's process sees it."""
