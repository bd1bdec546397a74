"""Whether what stands in code does anything: is it reached, is it used, does it do more than hand a value through?"""
