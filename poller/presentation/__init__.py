"""Values as people read them: numbers, states, sentences and JSON. The command line and the web
pages both use this package; it prints nothing itself.
"""
