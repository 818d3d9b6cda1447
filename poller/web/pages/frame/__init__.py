"""The frame of all pages: navigation, health sentence, theme, and the renderer of the templates."""
