"""Routes of the pages of one device, and the addresses of its forms."""
