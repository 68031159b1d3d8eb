package inspect

import (
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
)

// result gives the figures, zero where there are no finite numbers.
func result(m moments.Moments) store.Moments {
	return store.Moments{Min: m.Min, Max: m.Max, Mean: m.Mean, Std: m.Std(), NonFinite: m.NonFinite}
}
