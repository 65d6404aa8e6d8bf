"""Can an agent rebuild a Cochrane review's list of included studies?"""
