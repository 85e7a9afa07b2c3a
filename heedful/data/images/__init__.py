"""Pictures, and what is known of them: labels, boxes, masks, captions."""
