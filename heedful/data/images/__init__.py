"""Pictures and their annotations: labels, boxes, masks, captions."""
