"""Pages that show plans and demos: self-contained HTML with inline SVG, without scripts."""
