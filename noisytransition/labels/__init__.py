"""Labels: from what users pass to one record of class indices."""
