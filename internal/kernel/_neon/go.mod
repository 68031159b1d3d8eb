module github.com/penstock/penstock/internal/kernel/_neon

go 1.26.0

require golang.org/x/arch v0.32.0
