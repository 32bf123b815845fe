"""Classification on tables: protocol, methods, metrics, and a sweep over them.

``tables`` turns a data set into a task with its splits; ``protocol`` says what a
method is and scores it; ``kernel_methods`` and ``baselines`` hold the methods,
``metrics`` and ``results`` judge a matrix of results, and ``sweep`` fills one.
"""
