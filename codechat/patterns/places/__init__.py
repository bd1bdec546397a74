"""Where something could sensibly be added: the places that an instruction to add is asked for at."""
